//! Reading ELF executables (elf(5)).

use crate::fail::SysResult;
use syscall_table::errno::Errno;
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Elf64_Ehdr.
#[repr(C)]
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct Header {
    ident: [u8; 16],
    kind: u16,
    machine: u16,
    version: u32,
    entry: u64,
    phoff: u64,
    shoff: u64,
    flags: u32,
    ehsize: u16,
    phentsize: u16,
    phnum: u16,
    shentsize: u16,
    shnum: u16,
    shstrndx: u16,
}

/// Elf64_Phdr.
#[repr(C)]
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    vaddr: u64,
    paddr: u64,
    filesz: u64,
    memsz: u64,
    align: u64,
}

const ET_EXEC: u16 = 2;
const ET_DYN: u16 = 3;
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_INTERP: u32 = 3;
const PT_PHDR: u32 = 6;
const PT_GNU_STACK: u32 = 0x6474_e551;
/// Size of a program header.
pub(crate) const PHENT: u64 = 56;
/// Linux refuses program headers of more than 64 KiB in total.
const PHDRS_MAX: u64 = 0x1_0000;
/// PF_X, PF_W, PF_R.
pub(crate) const PF_X: u32 = 1;
pub(crate) const PF_W: u32 = 2;
pub(crate) const PF_R: u32 = 4;
const PAGE: u64 = 4096;

/// A segment to be loaded. Its range does not overflow and lies below 2^47.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub vaddr: u64,
    pub memsz: u64,
    pub filesz: u64,
    pub offset: u64,
    pub flags: u32,
}

/// What a program file says of itself.
#[derive(Debug)]
pub(crate) struct Image {
    /// Position-independent: loaded anywhere.
    pub relocatable: bool,
    pub entry: u64,
    /// Where the program headers are in memory, before relocation.
    pub phdr: u64,
    pub phnum: u64,
    pub segments: Vec<Segment>,
    /// Path of the interpreter.
    pub interp: Option<Vec<u8>>,
    pub exec_stack: bool,
    /// Pages spanned, before relocation.
    pub start: u64,
    pub end: u64,
    /// Greatest alignment asked for, at least a page.
    pub align: u64,
}

/// Rounds up to a page; saturates.
pub(crate) fn page_up(addr: u64) -> u64 {
    addr.saturating_add(PAGE - 1) & !(PAGE - 1)
}

/// Rounds down to a page.
pub(crate) fn page_down(addr: u64) -> u64 {
    addr & !(PAGE - 1)
}

/// Parses an executable; `read` fills a buffer from an offset or fails.
///
/// # Errors
/// ENOEXEC for what is no x86-64 executable; what `read` fails with.
pub(crate) fn parse(read: &mut dyn FnMut(u64, &mut [u8]) -> SysResult<()>) -> SysResult<Image> {
    let mut header = Header::new_zeroed();
    read(0, header.as_mut_bytes())?;
    let ident_ok = header.ident.starts_with(b"\x7fELF\x02\x01");
    if !ident_ok || header.machine != EM_X86_64 || !matches!(header.kind, ET_EXEC | ET_DYN) {
        return Err(Errno::ENOEXEC.into());
    }
    let phnum = u64::from(header.phnum);
    if u64::from(header.phentsize) != PHENT || phnum == 0 || phnum * PHENT > PHDRS_MAX {
        return Err(Errno::ENOEXEC.into());
    }
    let mut table = vec![0u8; (phnum * PHENT) as usize];
    read(header.phoff, &mut table)?;

    let mut image = Image {
        relocatable: header.kind == ET_DYN,
        entry: header.entry,
        phdr: 0,
        phnum,
        segments: Vec::new(),
        interp: None,
        exec_stack: false,
        start: u64::MAX,
        end: 0,
        align: PAGE,
    };
    let mut phdr = None;
    for entry in table.chunks_exact(PHENT as usize) {
        let Ok(ph) = ProgramHeader::read_from_bytes(entry) else { continue };
        match ph.kind {
            PT_LOAD if ph.memsz > 0 => image.segment(&ph, header.phoff, &mut phdr)?,
            PT_PHDR => phdr = Some(ph.vaddr),
            PT_GNU_STACK => image.exec_stack = ph.flags & PF_X != 0,
            PT_INTERP if image.interp.is_none() => {
                if !(2..=4096).contains(&ph.filesz) {
                    return Err(Errno::ENOEXEC.into());
                }
                let mut path = vec![0u8; ph.filesz as usize];
                read(ph.offset, &mut path)?;
                if path.pop() != Some(0) {
                    return Err(Errno::ENOEXEC.into());
                }
                path.truncate(path.iter().position(|b| *b == 0).unwrap_or(path.len()));
                image.interp = Some(path);
            }
            _ => {}
        }
    }
    if image.segments.is_empty() {
        return Err(Errno::ENOEXEC.into());
    }
    image.phdr = phdr.unwrap_or(0);
    Ok(image)
}

impl Image {
    fn segment(&mut self, ph: &ProgramHeader, phoff: u64, phdr: &mut Option<u64>) -> SysResult<()> {
        let end = ph.vaddr.checked_add(ph.memsz).filter(|end| *end < 1 << 47);
        let file_end = ph.offset.checked_add(ph.filesz).filter(|end| *end < 1 << 62);
        let (Some(end), Some(file_end)) = (end, file_end) else { return Err(Errno::ENOEXEC.into()) };
        if ph.filesz > ph.memsz || (ph.vaddr ^ ph.offset) & (PAGE - 1) != 0 {
            return Err(Errno::ENOEXEC.into());
        }
        if phdr.is_none() && phoff >= ph.offset && phoff < file_end {
            *phdr = Some(phoff - ph.offset + ph.vaddr);
        }
        self.start = self.start.min(page_down(ph.vaddr));
        self.end = self.end.max(page_up(end));
        if ph.align.is_power_of_two() && ph.align <= 1 << 30 {
            self.align = self.align.max(ph.align);
        }
        self.segments.push(Segment {
            vaddr: ph.vaddr,
            memsz: ph.memsz,
            filesz: ph.filesz,
            offset: ph.offset,
            flags: ph.flags,
        });
        Ok(())
    }
}

/// Parses `data` as a whole file, for a fuzzer: it must return whatever the bytes are, and an image that it
/// accepts must keep to what the loader relies on.
pub fn fuzz_parse(data: &[u8]) {
    let mut read = |offset: u64, buffer: &mut [u8]| {
        let start = usize::try_from(offset).map_err(|_| Errno::ENOEXEC)?;
        let end = start.checked_add(buffer.len()).ok_or(Errno::ENOEXEC)?;
        buffer.copy_from_slice(data.get(start..end).ok_or(Errno::ENOEXEC)?);
        Ok(())
    };
    let Ok(image) = parse(&mut read) else { return };
    assert!(image.start <= image.end && image.end <= 1 << 47, "the range of an image");
    assert!(image.align.is_power_of_two() && image.align >= PAGE, "the alignment of an image");
    assert!(image.interp.is_none_or(|path| !path.contains(&0)), "the path of an interpreter");
    for segment in &image.segments {
        assert!(image.start <= segment.vaddr && segment.filesz <= segment.memsz, "a segment");
        assert!(
            segment.vaddr.checked_add(segment.memsz).is_some_and(|end| end <= image.end),
            "a segment's end"
        );
        assert!(segment.offset.checked_add(segment.filesz).is_some(), "a segment's part of the file");
    }
}
