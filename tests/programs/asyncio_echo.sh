# An echo server with 2,000 clients.
ulimit -n 5000 2>/dev/null; python3 - <<'P'
import asyncio
async def echo(r, w):
    while (d := await r.readline()): w.write(d); await w.drain()
    w.close()
async def client(port, i, gate):
    r, w = await asyncio.open_connection("127.0.0.1", port)
    await gate.wait()
    for j in range(3):
        w.write(b"%d %d\n" % (i, j)); assert await r.readline() == b"%d %d\n" % (i, j)
    w.close(); return 1
async def main():
    s = await asyncio.start_server(echo, "127.0.0.1", 0, backlog=3000); port = s.sockets[0].getsockname()[1]
    gate = asyncio.Event(); ts = [asyncio.create_task(client(port, i, gate)) for i in range(2000)]
    await asyncio.sleep(0.5); gate.set(); print(sum(await asyncio.gather(*ts)))
asyncio.run(main())
P
