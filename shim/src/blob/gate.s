# The gates: see gate.rs. The names in braces are constants of layout.rs.
# What the gates do more than once.
    .macro save_args
    mov gs:[{args}], rdi
    mov gs:[{args} + 8], rsi
    mov gs:[{args} + 16], rdx
    mov gs:[{args} + 24], r10
    mov gs:[{args} + 32], r8
    mov gs:[{args} + 40], r9
    .endm
    .macro restore_used
    mov rdi, gs:[{args}]
    mov rsi, gs:[{args} + 8]
    mov rdx, gs:[{args} + 16]
    .endm
    .macro restore_args
    restore_used
    mov r10, gs:[{args} + 24]
    mov r8, gs:[{args} + 32]
    mov r9, gs:[{args} + 40]
    .endm
# Flags from the slot, by way of rax.
    .macro restore_flags
    mov rax, gs:[{flags}]
    add al, 0x7f
    sahf
    .endm
# Goes there if string instructions go backward, for the guest has set the direction flag. rsi: anything that can be read.
    .macro if_backward to
    mov rcx, rsi
    lodsb
    cmp rsi, rcx
    mov rsi, rcx
    jb \to
    .endm
# Gates of a form: the site's place in the table, the way on, and the instruction that traps.
    .macro gates_to way
    .set lz_i, 0
    .rept {sites}
    .balign 32, 0xcc
    # mov r11d, index * 32
    .byte 0x41, 0xbb
    .long lz_i * 32
    jmp \way
    .balign 16, 0xcc
    syscall
    ud2
    .set lz_i, lz_i + 1
    .endr
    .endm

    .section .lazaret.gates,"ax",@progbits
lz_gates:
    gates_to lz_light_a
    gates_to lz_light_b
    .set lz_i, 0
    .rept {sites}
    .balign 32, 0xcc
    .byte 0x41, 0xbb
    .long lz_i * 32
    # mov rsi, [site.compared]
    .byte 0x48, 0x8b, 0x35
    .long lz_table + lz_i * 32 + 16 - . - 4
    jmp lz_light_a
    .set lz_i, lz_i + 1
    .endr
    .set lz_i, 0
    .rept {sites}
    .balign 32, 0xcc
    # cmp rax, [site.compared]; jmp [site.after]
    .byte 0x48, 0x3b, 0x05
    .long lz_table + lz_i * 32 + 16 - . - 4
    .byte 0xff, 0x25
    .long lz_table + lz_i * 32 + 24 - . - 4
    .set lz_i, lz_i + 1
    .endr
    .balign 32, 0xcc
lz_rung:
    syscall
    ud2
    .text
    .balign 64
lz_light_start:
lz_light_a:
    lahf
    seto al
    rdgsbase rcx
lz_flags_live:
    shr rcx, 24
    sub rcx, {ctl_high}
    cmp rcx, {ctl_more}
    ja lz_plain_a
    mov gs:[{flags}], rax
lz_flags_saved:
    lea rcx, [rip + lz_table]
    mov eax, dword ptr [rcx + r11]
    jmp lz_common
lz_light_b:
    rdgsbase rcx
    shr rcx, 24
    sub rcx, {ctl_high}
    cmp rcx, {ctl_more}
    ja lz_plain_b
    cmp rax, {kinds}
    jb lz_common
    # The gate's own trap: no slot to be found, or no number that gates know.
lz_plain_b:
    lea rcx, [rip + lz_gates + {gate_trap}]
    lea rcx, [rcx + r11]
    jmp rcx
lz_plain_a:
    add al, 0x7f
    sahf
lz_plain_set:
    lea rcx, [rip + lz_table]
    mov eax, dword ptr [rcx + r11]
    jmp lz_plain_b
lz_common:
    mov gs:[{nr}], rax
lz_nr_saved:
    lea rcx, [rip + {kinds_of_calls}]
    movzx ecx, byte ptr [rcx + rax]
    cmp ecx, 1
    je lz_trap
    ja lz_own
    lea rcx, [rip + lz_forms]
    movzx ecx, byte ptr [rcx + rax]
    test ecx, ecx
    jnz lz_data
lz_hand:
    save_args
    mov dword ptr gs:[{kind}], {kind_light}
    mov gs:[{site}], r11d
lz_post:
    mov ecx, gs:[{req_seq}]
    add ecx, 1
    xchg gs:[{req_seq}], ecx
lz_posted:
    lea r11d, [rcx + 1]
    mov ecx, {spins}
    # What most often blocks does not wait to be told.
    mov eax, gs:[{nr}]
    inc eax
    cmp gs:[{blocks_nr}], eax
    jne 2f
    cmp gs:[{blocks_first}], rdi
    jne 2f
    mov eax, gs:[{blocks_second}]
    cmp eax, {any}
    je 7f
    cmp eax, esi
    je 7f
2:
    cmp gs:[{rsp_seq}], r11d
    je 5f
    cmp dword ptr gs:[{polling}], {polled}
    jb 3f
    ja 7f
    pause
    dec ecx
    jnz 2b
3:
    mov gs:[{light_seq}], r11d
4:
    mov edi, r11d
    mov eax, {doorbell}
    syscall
    mov r11d, gs:[{light_seq}]
    cmp gs:[{rsp_seq}], r11d
    je 4f
    test eax, eax
    jns 4b
    # EINTR: the interrupt signal came before the sentry heard the bell.
    cmp eax, -4
    je 4b
    jmp 9f
4:
    mov rdi, gs:[{args}]
5:
    mov ecx, gs:[{rsp_kind}]
    cmp ecx, {reply_return}
    jne 6f
lz_value:
    mov rcx, gs:[{value}]
    mov rax, gs:[{flags}]
    mov r11d, gs:[{site}]
    add al, 0x7f
    sahf
    mov rax, rcx
    lea rcx, [rip + lz_table]
    mov rcx, [rcx + r11 + 8]
    jmp rcx
    # The call blocks: others may have the processor. Should this go on for long, the poller has none.
7:
    mov gs:[{light_seq}], r11d
    rdtsc
    mov gs:[{waits_since}], eax
7:
    mov eax, 24
    syscall
    rdtsc
    sub eax, gs:[{waits_since}]
    mov rdx, gs:[{args} + 16]
    mov r11d, gs:[{light_seq}]
    cmp eax, {patience}
    ja 3b
    prefetcht0 gs:[{out}]
    cmp gs:[{rsp_seq}], r11d
    je 5b
    mov ecx, {spins}
    cmp dword ptr gs:[{polling}], {polled}
    ja 7b
    jmp 2b
    # Anything else than a value: reported anew, with all registers.
6:
    mov dword ptr gs:[{step}], 0
    cmp ecx, {reply_data}
    je lz_out
    cmp ecx, {reply_batch}
    je lz_batch
    cmp ecx, {reply_exit}
    je 9f
lz_anew:
    mov rcx, gs:[{nr}]
    restore_flags
    mov rax, rcx
    jmp lz_rung
9:
    mov eax, 60
    xor edi, edi
    syscall
    ud2
    # Pieces of guest memory come with the answer. An interrupt begins anew with them.
lz_out:
    xor r11d, r11d
lz_out_live:
2:
    mov rdi, gs:[{out} + r11]
    mov edx, gs:[{out} + r11 + 8]
    add r11d, 16
    test edx, edx
    jz lz_out_done
    # Long pieces by a string instruction, unless the guest has set the direction flag.
    cmp edx, {long}
    jb 8f
    rdgsbase rsi
    lea rsi, [rsi + r11 + {out}]
    if_backward 8f
    mov ecx, edx
    rep movsb
    jmp 7f
8:
    xor ecx, ecx
    cmp edx, 8
    jb 4f
3:
    mov rax, gs:[{out} + r11 + rcx]
    mov [rdi + rcx], rax
    add ecx, 8
    lea esi, [rcx + 8]
    cmp esi, edx
    jbe 3b
    lea rsi, [r11 + rdx]
    mov rax, gs:[{out} + rsi - 8]
    mov [rdi + rdx - 8], rax
    jmp 7f
4:
    lea rsi, [r11 + rcx]
    mov al, gs:[{out} + rsi]
    mov [rdi + rcx], al
    inc ecx
    cmp ecx, edx
    jb 4b
7:
    lea r11d, [r11 + rdx + 7]
    and r11d, -8
    jmp 2b
lz_out_done:
    restore_used
    jmp lz_value
    # The answer is in the slot already.
lz_own:
    cmp ecx, {kind_mask}
    jae lz_more
    cmp dword ptr gs:[{own_valid}], 0
    je lz_hand
    add qword ptr gs:[{own_count} + rcx * 8 - 16], 1
    mov rcx, gs:[{own} + rcx * 8 - 16]
    restore_flags
    mov rax, rcx
    lea rcx, [rip + lz_table]
    mov rcx, [rcx + r11 + 8]
    jmp rcx
    # rt_sigprocmask on the mask in the slot, in one step: the sentry may take the mask back at any time.
lz_more:
    ja lz_others
    cmp r10, 8
    jne lz_hand
    mov gs:[{site}], r11d
lz_mask_live:
    mov rax, gs:[{mask}]
    bt eax, {lent_bit}
    jnc lz_mask_hand
    test rsi, rsi
    jz 3f
    cmp edi, 2
    ja lz_mask_hand
    mov r11, [rsi]
2:
    test rdx, rdx
    jz 4f
    mov rcx, rax
    btr rcx, {lent_bit}
    mov [rdx], rcx
4:
    mov rcx, r11
    cmp edi, 1
    ja 5f
    jb 6f
    not rcx
    and rcx, rax
    jmp 5f
6:
    or rcx, rax
5:
    and rcx, {maskable}
    bts rcx, {lent_bit}
    lock cmpxchg gs:[{mask}], rcx
lz_mask_tried:
    jz lz_mask_done
    bt eax, {lent_bit}
    jc 2b
    jmp lz_mask_hand
    # Without a new mask the old one is only told.
3:
    test rdx, rdx
    jz lz_mask_done
    mov rcx, rax
    btr rcx, {lent_bit}
    mov [rdx], rcx
lz_mask_done:
    add qword ptr gs:[{own_count} + ({kind_mask} - 2) * 8], 1
    mov r11d, gs:[{site}]
    jmp lz_zero
lz_mask_hand:
    mov r11d, gs:[{site}]
    jmp lz_hand
    # What rt_sigaction says of a signal that has its default action. A fault goes on at lz_mask_hand.
lz_action:
    test rsi, rsi
    jnz lz_hand
    test rdx, rdx
    jz lz_hand
    cmp r10, 8
    jne lz_hand
    mov gs:[{site}], r11d
    lea ecx, [rdi - 1]
    cmp ecx, 63
    ja lz_hand
    mov rax, gs:[{own} + ({kind_action} - 2) * 8]
    bt rax, rcx
    jnc lz_hand
    xor ecx, ecx
    mov [rdx], rcx
    mov [rdx + 8], rcx
    mov [rdx + 16], rcx
    mov [rdx + 24], rcx
    add qword ptr gs:[{own_count} + ({kind_action} - 2) * 8], 1
    jmp lz_zero
lz_others:
    cmp ecx, {kind_pread}
    je lz_pread
    cmp ecx, {kind_map}
    je lz_map
    cmp ecx, {kind_altstack}
    je lz_altstack
    cmp ecx, {kind_advice}
    je lz_advice
    cmp dword ptr gs:[{own_valid}], 0
    je lz_hand
    cmp ecx, {kind_advice}
    ja lz_action
    jmp lz_robust
    # Memory that is not needed: the host does what madvise says, the sentry finds out what is wrong.
lz_advice:
    cmp dword ptr gs:[{own_valid}], 0
    je lz_trap
    cmp edx, {dontneed}
    jne lz_trap
    lea rcx, [rip + lz_head]
    cmp dword ptr [rcx + {ask_advice}], 0
    jne lz_trap
    mov gs:[{site}], r11d
    syscall
lz_advice_made:
    mov r11d, gs:[{site}]
    test rax, rax
    jz 2f
    mov rax, gs:[{nr}]
    jmp lz_trap
2:
    add qword ptr gs:[{own_count} + ({kind_advice} - 2) * 8], 1
    jmp lz_zero
    # sigaltstack with nothing but a plain stack or none, off the present one. A fault goes on at lz_mask_hand.
lz_altstack:
    cmp dword ptr gs:[{own_valid}], 0
    je lz_hand
    cmp dword ptr gs:[{alt_valid}], 0
    je lz_hand
    mov gs:[{site}], r11d
lz_alt_live:
    mov rcx, gs:[{alt} + 8]
    test rcx, rcx
    jz 2f
    mov rax, rsp
    sub rax, gs:[{alt}]
    cmp rax, rcx
    jbe lz_mask_hand
2:
    test rdi, rdi
    jz 5f
    mov r11d, [rdi + 8]
    mov rcx, [rdi + 16]
    mov rax, [rdi]
    cmp r11d, 2
    ja lz_mask_hand
    je 3f
    cmp rcx, {least_stack}
    jae 4f
    jmp lz_mask_hand
3:
    xor eax, eax
    xor ecx, ecx
4:
    mov gs:[{alt_next}], rax
    mov gs:[{alt_next} + 8], rcx
5:
    test rsi, rsi
    jz 6f
    mov rax, gs:[{alt}]
    mov rcx, gs:[{alt} + 8]
    mov [rsi], rax
    mov [rsi + 16], rcx
    xor eax, eax
    test rcx, rcx
    setz al
    add eax, eax
    mov [rsi + 8], rax
6:
    test rdi, rdi
    jz lz_alt_done
lz_alt_change:
    mov rax, gs:[{alt_next}]
    mov gs:[{alt}], rax
    mov rax, gs:[{alt_next} + 8]
    mov gs:[{alt} + 8], rax
    mov dword ptr gs:[{alt_given}], 1
lz_alt_done:
    add qword ptr gs:[{own_count} + ({kind_altstack} - 2) * 8], 1
    mov r11d, gs:[{site}]
    jmp lz_zero
lz_robust:
    cmp rsi, 24
    jne lz_hand
    mov gs:[{robust}], rdi
    mov dword ptr gs:[{robust_given}], 1
    add qword ptr gs:[{own_count} + ({kind_mask} - 1) * 8], 1
lz_zero:
    restore_flags
    lea rcx, [rip + lz_table]
    mov rcx, [rcx + r11 + 8]
    mov eax, 0
    jmp rcx
    # The call needs all registers.
lz_trap:
    mov rcx, rax
    restore_flags
    mov rax, rcx
    jmp lz_plain_b
lz_map:
    mov ecx, r10d
    and ecx, {map_form}
    cmp ecx, {map_own}
    je lz_hand
    jmp lz_trap
    # pread of a file that is mapped here. A file that is shorter by now has no page there, which is a fault, or zeroes from its end on:
    # so what ends in a zero is the sentry's. The call may begin anew at any time.
lz_pread:
    cmp dword ptr gs:[{own_valid}], 0
    je lz_hand
    mov gs:[{site}], r11d
lz_pread_kept:
    lea ecx, [rdi + 1]
    test ecx, ecx
    jz lz_pread_hand
    xor r11d, r11d
2:
    cmp gs:[{lent} + r11], ecx
    je 3f
    add r11d, {lent_entry}
    cmp r11d, {lent_size}
    jb 2b
    jmp lz_pread_hand
3:
    mov rax, gs:[{lent} + r11 + 16]
    sub rax, r10
    jb lz_pread_hand
    cmp rdx, rax
    ja lz_pread_hand
    test rdx, rdx
    jz lz_pread_hand
    mov rax, gs:[{lent} + r11 + 8]
    add rax, r10
    mov gs:[{args}], rdi
    mov gs:[{args} + 8], rsi
    mov gs:[{args} + 16], rdx
lz_pread_live:
    mov rdi, rsi
    mov rsi, rax
    if_backward lz_pread_back
    mov rcx, rdx
    cmp byte ptr [rsi + rcx - 1], 0
    je lz_pread_back
    rep movsb
    restore_used
    add qword ptr gs:[{own_count} + ({kind_pread} - 2) * 8], 1
    mov r11d, gs:[{site}]
    restore_flags
    mov rax, rdx
    lea rcx, [rip + lz_table]
    mov rcx, [rcx + r11 + 8]
    jmp rcx
lz_pread_back:
    restore_used
lz_pread_hand:
    mov r11d, gs:[{site}]
    jmp lz_hand
lz_pread_end:
    # What an argument points to travels with the request. A fault ends the copy: the sentry then looks for itself.
lz_data:
    save_args
    mov gs:[{site}], r11d
lz_data_live:
    mov edx, ecx
    and ecx, 7
    test dl, {of_lock}
    jz lz_data_named
    mov r11, gs:[{args} + rcx * 8 - 8]
    cmp r11, 63
    ja lz_data_none
    movabs rdi, {lock_commands}
    bt rdi, r11
    jnc lz_data_none
lz_data_named:
    test dl, {of_wait}
    jz 1f
    mov r11d, gs:[{args} + 8]
    and r11d, 0x7f
    jz 1f
    cmp r11d, {wait_bitset}
    jne lz_data_none
1:
    mov rsi, gs:[{args} + rcx * 8]
    test rsi, rsi
    jz lz_data_none
    test dl, {string}
    jnz 6f
    lea r11, [rip + lz_units]
    movzx edi, byte ptr [r11 + rax]
    test dl, {counted}
    jz 2f
    mov rdx, gs:[{args} + rcx * 8 + 8]
    cmp rdx, {in_max}
    ja lz_data_none
    imul edi, edx
2:
    mov edx, edi
    lea ecx, [rdx - 1]
    cmp ecx, {in_max}
    jae lz_data_none
    cmp edx, {long}
    jb 5f
    if_backward 5f
    rdgsbase rdi
    add rdi, {inward}
    mov ecx, edx
    rep movsb
    jmp 9f
5:
    xor ecx, ecx
    cmp edx, 8
    jb 1f
3:
    mov rax, [rsi + rcx]
    mov gs:[{inward} + rcx], rax
    add ecx, 8
    lea eax, [rcx + 8]
    cmp eax, edx
    jbe 3b
    mov rax, [rsi + rdx - 8]
    mov gs:[{inward} + rdx - 8], rax
    jmp 9f
    # A futex's word in one step.
1:
    cmp edx, 4
    jne 4f
    mov eax, [rsi]
    mov gs:[{inward}], eax
    jmp 9f
4:
    mov al, [rsi + rcx]
    mov gs:[{inward} + rcx], al
    inc ecx
    cmp ecx, edx
    jb 4b
    jmp 9f
    # A string, by aligned words, which lie in one page each; bytes before its start are no end.
6:
    mov ecx, esi
    shl ecx, 3
    and rsi, -8
    mov eax, 1
    shl rax, cl
    dec rax
    mov rdx, [rsi]
    mov gs:[{inward}], rdx
    or rdx, rax
    xor ecx, ecx
    movabs rax, 0x0101010101010101
    movabs rdi, 0x8080808080808080
7:
    mov r11, rdx
    sub r11, rax
    not rdx
    and r11, rdx
    test r11, rdi
    jnz 8f
    add ecx, 8
    cmp ecx, {string_max}
    jae lz_data_none
    mov rdx, [rsi + rcx]
    mov gs:[{inward} + rcx], rdx
    jmp 7b
8:
    lea edx, [rcx + 8]
9:
    shl edx, {kind_bits}
    or edx, {kind_light}
    jmp 2f
lz_data_none:
    mov edx, {kind_light}
2:
    mov dword ptr gs:[{kind}], edx
    restore_used
    mov r11d, gs:[{site}]
    jmp lz_post
lz_data_end:
    # Host calls that come with a value. What fails is made again by the handler, which reports it.
lz_batch:
2:
    mov ecx, gs:[{step}]
    cmp ecx, gs:[{rsp_calls}]
    jae 4f
    cmp ecx, {batch}
    jae 4f
    imul ecx, ecx, {call}
    mov rax, gs:[{calls} + rcx]
    mov rdi, gs:[{calls} + rcx + 8]
    mov rsi, gs:[{calls} + rcx + 16]
    mov rdx, gs:[{calls} + rcx + 24]
    mov r10, gs:[{calls} + rcx + 32]
    mov r8, gs:[{calls} + rcx + 40]
    mov r9, gs:[{calls} + rcx + 48]
    cmp eax, {poke}
    je lz_batch_poke
    syscall
lz_batch_made:
    cmp rax, -4095
    jae lz_batch_failed
    add dword ptr gs:[{step}], 1
lz_batch_noted:
    jmp 2b
    # Bytes of code are the handler's.
lz_batch_poke:
    mov rax, -1
    jmp lz_batch_made
lz_batch_failed:
    restore_args
    jmp lz_anew
4:
    mov ecx, gs:[{req_seq}]
    xchg gs:[{done}], ecx
    cmp dword ptr gs:[{done_wait}], 0
    je 5f
    mov dword ptr gs:[{done_wait}], 0
    rdgsbase rdi
    add rdi, {done}
    mov esi, 1
    mov edx, 0x7fffffff
    xor r10d, r10d
    xor r8d, r8d
    xor r9d, r9d
    mov eax, 202
    syscall
5:
    restore_args
    jmp lz_value
lz_batch_end:
lz_light_end:
