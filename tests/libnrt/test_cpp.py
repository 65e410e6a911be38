"""A C++ program against the public headers themselves: tensors, batches, queues, traces, profiles, several threads."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from formats.ntff import open_ntff
from tests.libnrt.test_programs import surroundings
from tests.runtime.support import copying, out_of_bounds

PROGRAM = r"""
#include <nrt/nrt.h>
#include <nrt/nrt_async.h>
#include <nrt/nrt_experimental.h>
#include <nrt/nrt_profile.h>
#include <nrt/nrt_sys_trace.h>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static void check(NRT_STATUS status, const char *what) {
    if (status != NRT_SUCCESS) throw std::runtime_error(std::string(what) + ": " + nrt_get_status_as_str(status));
}
#define CHECK(call) check((call), #call)

static std::vector<char> file(const std::string &path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

class Tensor {
  public:
    Tensor(int vnc, size_t size, const char *name) : size_(size) {
        CHECK(nrt_tensor_allocate(NRT_TENSOR_PLACEMENT_DEVICE, vnc, size, name, &tensor_));
    }
    ~Tensor() { nrt_tensor_free(&tensor_); }
    Tensor(const Tensor &) = delete;
    nrt_tensor_t *get() const { return tensor_; }
    size_t size() const { return size_; }
  private:
    nrt_tensor_t *tensor_ = nullptr;
    size_t size_;
};

class Model {
  public:
    Model(const std::vector<char> &neff, int vnc) { CHECK(nrt_load(neff.data(), neff.size(), vnc, 1, &model_)); }
    ~Model() { nrt_unload(model_); }
    nrt_model_t *get() const { return model_; }
    std::vector<std::pair<std::string, bool>> tensors() const {
        nrt_tensor_info_array_t *info = nullptr;
        CHECK(nrt_get_model_tensor_info(model_, &info));
        std::vector<std::pair<std::string, bool>> found;
        for (uint64_t i = 0; i < info->tensor_count; i++)
            found.emplace_back(info->tensor_array[i].name, info->tensor_array[i].usage == NRT_TENSOR_USAGE_OUTPUT);
        CHECK(nrt_free_model_tensor_info(info));
        return found;
    }
  private:
    nrt_model_t *model_ = nullptr;
};

struct Sets {
    nrt_tensor_set_t *in = nullptr, *out = nullptr;
    Sets(const Tensor &x, const Tensor &y) {
        CHECK(nrt_allocate_tensor_set(&in));
        CHECK(nrt_allocate_tensor_set(&out));
        CHECK(nrt_add_tensor_to_tensor_set(in, "x", x.get()));
        CHECK(nrt_add_tensor_to_tensor_set(out, "y", y.get()));
    }
    ~Sets() {
        nrt_destroy_tensor_set(&in);
        nrt_destroy_tensor_set(&out);
    }
};

static void rank(const std::vector<char> &neff, int vnc, std::vector<float> &back) {
    Model model(neff, vnc);
    Tensor x(vnc, 4 * 8192, "x"), y(vnc, 4 * 8192, "y");
    Sets sets(x, y);
    std::vector<float> data(8192);
    std::iota(data.begin(), data.end(), vnc * 10000.0f);
    nrta_error_tracker_t *tracker = nullptr;
    CHECK(nrta_error_tracker_create(vnc, &tracker));
    nrta_seq_t wrote = 0, ran = 0, read = 0;
    bool done = false;
    CHECK(nrta_tensor_write(x.get(), data.data(), 0, x.size(), 0, tracker, &wrote));
    while (!done) CHECK(nrta_is_completed(wrote, &done));
    CHECK(nrta_execute_schedule(model.get(), sets.in, sets.out, 0, tracker, &ran));
    for (done = false; !done;) CHECK(nrta_is_completed(ran, &done));
    back.resize(8192);
    CHECK(nrta_tensor_read(back.data(), y.get(), 0, y.size(), 1, tracker, &read));
    for (done = false; !done;) CHECK(nrta_is_completed(read, &done));
    const nrta_error_t *errors = nullptr;
    size_t count = 1;
    CHECK(nrta_error_tracker_get_list(tracker, &errors, &count));
    if (count) throw std::runtime_error("errors");
    nrta_error_tracker_destroy(tracker);
    if (std::memcmp(back.data(), data.data(), y.size())) throw std::runtime_error("another result");
}

int main(int, char **argv) try {
    const auto good = file(argv[1]), bad = file(argv[2]);
    CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", ""));
    nrt_sys_trace_config_t *config = nullptr;
    CHECK(nrt_sys_trace_config_allocate(&config));
    nrt_sys_trace_config_set_max_events_per_nc(config, 1000);
    CHECK(nrt_sys_trace_start(config));
    nrt_sys_trace_config_free(config);
    std::vector<std::vector<float>> results(4);
    std::vector<std::thread> ranks;
    for (int vnc = 0; vnc < 4; vnc++) ranks.emplace_back(rank, std::cref(good), vnc, std::ref(results[vnc]));
    for (auto &each : ranks) each.join();
    char *events = nullptr;
    size_t size = 0;
    nrt_sys_trace_fetch_options_t *options = nullptr;
    CHECK(nrt_sys_trace_fetch_options_allocate(&options));
    CHECK(nrt_sys_trace_fetch_events(&events, &size, options));
    nrt_sys_trace_fetch_options_free(options);
    std::ofstream(argv[3], std::ios::binary).write(events, size);
    nrt_sys_trace_buffer_free(events);
    CHECK(nrt_sys_trace_stop());
    {
        Model model(good, 0), broken(bad, 1);
        for (const auto &[name, output] : model.tensors()) std::printf("%s %d\n", name.c_str(), output);
        Tensor x(0, 4 * 8192, "x"), y(0, 4 * 8192, "y"), z(1, 4 * 8192, "x");
        float numbers[4] = {1, 2, 3, 4}, back[4] = {};
        nrt_tensor_batch_op_t operations[2] = {{0, 8, numbers}, {64, 8, numbers + 2}};
        nrt_tensor_batch_t batch = {x.get(), operations, 2};
        CHECK(nrt_tensor_write_batch(&batch, 1, false));
        nrt_tensor_t *slice = nullptr;
        CHECK(nrt_tensor_allocate_slice(x.get(), 64, 16, "slice", &slice));
        CHECK(nrt_tensor_read(slice, back, 0, sizeof back));
        nrt_tensor_free(&slice);
        std::printf("%g %g %g\n", back[0], back[1], back[2]);
        Sets sets(x, y);
        CHECK(nrt_profile_start(model.get(), argv[4]));
        CHECK(nrt_execute(model.get(), sets.in, sets.out));
        CHECK(nrt_profile_stop(argv[4]));
        nrt_vnc_memory_stats_t stats;
        size_t written = 0;
        CHECK(nrt_get_vnc_memory_stats(0, &stats, sizeof stats, &written));
        std::printf("%d\n", stats.bytes_used > 0 && stats.bytes_used < stats.bytes_limit && written == sizeof stats);
        nrt_tensor_set_t *in = nullptr, *none = nullptr;
        CHECK(nrt_allocate_tensor_set(&in));
        CHECK(nrt_allocate_tensor_set(&none));
        CHECK(nrt_add_tensor_to_tensor_set(in, "x", z.get()));
        std::printf("%s\n", nrt_get_status_as_str(nrt_execute(broken.get(), in, none)));
        nrt_destroy_tensor_set(&in);
        nrt_destroy_tensor_set(&none);
    }
    nrt_close();
    return 0;
} catch (const std::exception &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
"""


def test_a_program_of_classes(library: Path, tmp_path: Path) -> None:
    corpus = os.environ.get("NEURONTOOLS_CORPUS")
    headers = Path(corpus or "", "aws-neuron-sdk", "src", "libnrt", "include")
    compiler = shutil.which("c++") or shutil.which("g++")
    if not corpus or not headers.is_dir():
        pytest.skip("NEURONTOOLS_CORPUS names no folder with aws-neuron-sdk")
    if compiler is None:
        pytest.skip("no C++ compiler")
    (tmp_path / "program.cpp").write_text(PROGRAM)
    (tmp_path / "good.neff").write_bytes(copying())
    (tmp_path / "bad.neff").write_bytes(out_of_bounds())
    command = [compiler, "-std=c++17", "-Wall", "-o", str(tmp_path / "program"), str(tmp_path / "program.cpp")]
    made = subprocess.run([*command, f"-I{headers}", f"-L{library.parent}", "-lnrt", "-lpthread"],
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert made.returncode == 0, made.stderr
    done = subprocess.run(
        [str(tmp_path / "program"), "good.neff", "bad.neff", "events.json", "profile.ntff"], capture_output=True,
        text=True, timeout=120, check=False, cwd=tmp_path, env=surroundings(library),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["x 0", "y 1", "3 4 0", "1", "NRT_EXEC_OOB"]
    events = json.loads((tmp_path / "events.json").read_text())["events"]
    assert {each["nc_idx"] for each in events} == {0, 1, 2, 3}
    assert len(open_ntff(tmp_path / "profile.ntff").executed(0)) == 8
