"""Two C programs that send a tensor to each other by way of libnrt."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.libnrt.test_programs import compiled, header, surroundings
from tests.runtime.support import free_port

PROGRAM = r"""
#include <string.h>
#include <unistd.h>
#define OK(call) do { int got = (call); if (got) { printf("%s: %d\n", #call, got); exit(1); } } while (0)
static unsigned char data[1 << 20], back[1 << 20];
int main(int argc, char **argv) {
    int mine = atoi(argv[1]), peer = 1 - mine;
    nrt_tensor_t *out, *in;
    nrt_async_sendrecv_comm_t *send, *receive;
    nrt_async_sendrecv_request_t *sent, *received;
    bool done = false;
    size_t size = 0;
    for (size_t i = 0; i < sizeof data; i++) data[i] = (unsigned char)(i * 7 + mine);
    OK(nrt_init(1, "", ""));
    OK(nrt_async_sendrecv_init(mine));
    OK(nrt_tensor_allocate(0, mine, sizeof data, "out", &out));
    OK(nrt_tensor_allocate(0, mine, sizeof data, "in", &in));
    OK(nrt_tensor_write(out, data, 0, sizeof data));
    OK(nrt_async_sendrecv_connect("127.0.0.1", peer, mine, &send));
    OK(nrt_async_sendrecv_accept("127.0.0.1", peer, mine, &receive));
    while (!done) { OK(nrt_async_sendrecv_test_comm(send, &done)); usleep(1000); }
    for (done = false; !done; usleep(1000)) OK(nrt_async_sendrecv_test_comm(receive, &done));
    OK(nrt_async_sendrecv_recv_tensor(in, 0, sizeof data, receive, &received));
    OK(nrt_async_sendrecv_send_tensor(out, 0, sizeof data, send, &sent));
    printf("%d\n", nrt_async_sendrecv_send_tensor(out, 0, 8, receive, &sent));
    for (done = false; !done; usleep(1000)) OK(nrt_async_sendrecv_test_request(sent, &done, &size));
    for (done = false; !done; usleep(1000)) OK(nrt_async_sendrecv_test_request(received, &done, &size));
    OK(nrt_async_sendrecv_flush(mine));
    OK(nrt_tensor_read(in, back, 0, sizeof back));
    for (size_t i = 0; i < sizeof data; i++) if (back[i] != (unsigned char)(i * 7 + peer)) return 2;
    printf("%zu\n%d\n", size, nrt_async_sendrecv_test_request(received, &done, &size));
    usleep(200000);  /* the other one may still be reading */
    OK(nrt_async_sendrecv_close(mine));
    nrt_close();
    return 0;
}
"""


def test_two_programs(library: Path, tmp_path: Path) -> None:
    program = compiled(header() + PROGRAM, library, tmp_path)
    environ = surroundings(
        library, NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED="1", NEURON_RT_NUM_CORES="2",
        NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT=str(free_port(2)),
    )  # fmt: skip
    both = [subprocess.Popen([str(program), str(rank)], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True) for rank in range(2)]  # fmt: skip
    for one in both:
        said, errors = one.communicate(timeout=120)
        # A communicator that receives does not send; a request that is done is gone.
        assert (one.returncode, said) == (0, f"2\n{1 << 20}\n3\n"), errors
