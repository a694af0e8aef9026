#!/usr/bin/env python3
"""Runs the engine's benchmarks and its peers on the same work, in turns, and prints ratios.

    make bench
    python3 scripts/bench_peers.py [matmul] [attention] [step] [decode] [prefill] [--threads 2] [--rounds 3] [--json]

Peers: oneDNN's sgemm (libdnnl.so, from Debian's libdnnl-dev or named by --dnnl) for matrix products, PyTorch for the rest, eager and compiled,
with the same model, the same threads, float32. Each peer runs in a process of its own that waits while the engine runs; each
round is one run of each; the best round of each counts. Needs torch and numpy.
"""
import argparse
import ctypes
import ctypes.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time

D12 = dict(layers=12, width=768, heads=12, head_dim=64, ffn=2048, vocab=50257)


def best_time(work, seconds):
    """The shortest time of one call over some seconds, after one call that does not count."""
    work()
    best, start = float("inf"), time.perf_counter()
    while time.perf_counter() - start < seconds:
        t = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - t)
    return best


# --- Peers, each a function that returns the work to time. They run in a worker, where torch may be imported.

def dnnl_product(task):
    import numpy as np
    library = ctypes.CDLL(task["dnnl"])
    rows, n_in, n_out = task["rows"], task["in"], task["out"]
    x, w, y = (np.full(shape, 1e-3, np.float32) for shape in ((rows, n_in), (n_out, n_in), (rows, n_out)))
    pointer = lambda a: a.ctypes.data_as(ctypes.c_void_p)
    size, one, zero = ctypes.c_int64, ctypes.c_float(1), ctypes.c_float(0)
    # Row-major: C (M × N) = op(A) op(B).
    forms = {"forward": (b"N", b"T", rows, n_out, n_in, x, n_in, w, n_in, zero, y, n_out),
             "dinput": (b"N", b"N", rows, n_in, n_out, y, n_out, w, n_in, zero, x, n_in),
             "dweight": (b"T", b"N", n_out, n_in, rows, y, n_out, x, n_in, one, w, n_in)}
    ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc = forms[task["form"]]

    def work():
        status = library.dnnl_sgemm(ctypes.c_char(ta), ctypes.c_char(tb), size(m), size(n), size(k), one, pointer(a), size(lda),
                                    pointer(b), size(ldb), beta, pointer(c), size(ldc))
        assert status == 0, f"dnnl_sgemm: status {status}"
    return work


def torch_attention(task):
    import torch
    q, k, v = (torch.randn(1, 12, task["seq"], 64, requires_grad=True) for _ in range(3))
    dy = torch.randn(1, 12, task["seq"], 64)

    def work():
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        if task["form"] != "forward":
            torch.autograd.grad(y, (q, k, v), dy)
    return work


def transformer(vocab, context, dtype=None):
    """The one-pass model of docs/model.md, d12, as one would write it in PyTorch."""
    import torch
    import torch.nn.functional as F
    from torch import nn
    s = dict(D12, vocab=vocab)
    D, H, d, ff, alpha = s["width"], s["heads"], s["head_dim"], s["ffn"], (2 * s["layers"]) ** -0.5
    angle = torch.outer(torch.arange(context), 10000.0 ** (-torch.arange(0, d, 2) / d))
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)

    def rotary(x, at):
        a, b = x.chunk(2, -1)
        c, s_ = cos[at], sin[at]
        return torch.cat((a * c - b * s_, b * c + a * s_), -1)

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.RMSNorm(D, eps=1e-6), nn.RMSNorm(D, eps=1e-6)
            self.q_norm, self.k_norm = nn.RMSNorm(d, eps=1e-6), nn.RMSNorm(d, eps=1e-6)
            self.qkv, self.o = nn.Linear(D, 3 * D, bias=False), nn.Linear(D, D, bias=False)
            self.gate_up, self.down = nn.Linear(D, 2 * ff, bias=False), nn.Linear(ff, D, bias=False)

        def forward(self, x, at, cache=None):
            B, T, _ = x.shape
            q, k, v = (t.view(B, T, H, d).transpose(1, 2) for t in self.qkv(self.norm1(x)).chunk(3, -1))
            q, k = rotary(self.q_norm(q), at), rotary(self.k_norm(k), at)
            if cache is not None:
                cache[0][:, :, at], cache[1][:, :, at] = k, v
                end = int(at[-1]) + 1
                k, v = cache[0][:, :, :end], cache[1][:, :, :end]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
            x = x + alpha * self.o(y.transpose(1, 2).reshape(B, T, D))
            gate, up = self.gate_up(self.norm2(x)).chunk(2, -1)
            return x + alpha * self.down(F.silu(gate) * up)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(s["vocab"], D)
            self.input_norm, self.final_norm = nn.RMSNorm(D, eps=1e-6), nn.RMSNorm(D, eps=1e-6)
            self.layers = nn.ModuleList(Layer() for _ in range(s["layers"]))

        def hidden(self, tokens, at, caches=None):
            x = self.input_norm(self.embedding(tokens))
            for i, layer in enumerate(self.layers):
                x = layer(x, at, caches[i] if caches else None)
            return self.final_norm(x)

        def forward(self, tokens, targets):
            logits = F.linear(self.hidden(tokens, torch.arange(tokens.shape[1])), self.embedding.weight)
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return Model().to(dtype)


def torch_step(task):
    import torch
    B, T = task["batch"], task["seq"]
    model = transformer(D12["vocab"], T)
    loss_of = torch.compile(model) if task["compile"] else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    tokens, targets = (torch.randint(D12["vocab"], (B, T)) for _ in range(2))

    def work():
        optimizer.zero_grad(set_to_none=True)
        loss_of(tokens, targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return work


def torch_decode(task):
    import torch
    context, B, dtype = 128, task["batch"], torch.bfloat16 if task["weights"] == "bf16" else torch.float32
    model = transformer(D12["vocab"], context, dtype)
    caches = [tuple(torch.zeros(B, D12["heads"], context, D12["head_dim"], dtype=dtype) for _ in range(2)) for _ in range(D12["layers"])]
    position = [0]

    @torch.inference_mode()
    def work():
        h = model.hidden(torch.randint(D12["vocab"], (B, 1)), torch.tensor([position[0]]), caches)
        torch.nn.functional.linear(h[:, -1], model.embedding.weight)
        position[0] = (position[0] + 1) % context
    return work


def torch_prefill(task):
    import torch
    model, tokens = transformer(D12["vocab"], task["seq"]), torch.randint(D12["vocab"], (1, task["seq"]))

    @torch.inference_mode()
    def work():
        model.hidden(tokens, torch.arange(task["seq"]))
    return work


PEERS = {"dnnl": dnnl_product, "attention": torch_attention, "step": torch_step, "decode": torch_decode, "prefill": torch_prefill}


def worker():
    """Answers every line `go` with the time and memory of the task on the command line."""
    task = json.loads(sys.argv[2])
    if task["peer"] != "dnnl":
        import torch
        torch.set_num_threads(task["threads"])
        torch.manual_seed(1)
    work = PEERS[task["peer"]](task)
    for _ in sys.stdin:
        seconds = best_time(work, task["seconds"])
        print(json.dumps({"seconds": seconds, "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}), flush=True)


class Peer:
    def __init__(self, name, options, **task):
        task = dict(task, peer=name, threads=options.threads, seconds=options.seconds, dnnl=options.dnnl)
        # A peer's idle threads must sleep, or they take the engine's time.
        environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads), OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="0", KMP_BLOCKTIME="0")
        self.process = subprocess.Popen([sys.executable, __file__, "--worker", json.dumps(task)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=environment)

    def run(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"a peer ended with status {self.process.wait()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def engine(options, *words):
    """The objects that ./bench prints."""
    command = ["./bench", *words, "--json", "--threads", str(options.threads), "--seconds", str(options.seconds)]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{' '.join(command)}: {ran.stderr.strip()}")
    return [json.loads(line) for line in ran.stdout.splitlines()]


class Report:
    def __init__(self, options):
        self.json = options.json

    def line(self, what, **numbers):
        if self.json:
            print(json.dumps(dict(what=what, **numbers)), flush=True)
        else:
            print(f"{what:44}" + "  ".join(f"{name} {value:.3g}" for name, value in numbers.items()), flush=True)


# --- Comparisons

def compare_matmul(options, report):
    for rows in (256, 1024):
        for n_in, n_out in ((768, 2304), (768, 768), (768, 4096), (2048, 768)):
            shape = f"{rows}x{n_in}x{n_out}"
            forms = ("forward", "dinput", "dweight")
            peers = {form: Peer("dnnl", options, **{"rows": rows, "in": n_in, "out": n_out, "form": form}) for form in forms}
            mine, theirs, peak = dict.fromkeys(forms, 0), dict.fromkeys(forms, 0), 0
            for _ in range(options.rounds):
                for form in forms:
                    theirs[form] = max(theirs[form], 2e-9 * rows * n_in * n_out / peers[form].run()["seconds"])
                for ours in engine(options, "matmul", "--shape", shape):
                    mine[ours["form"]], peak = max(mine[ours["form"]], ours["gflops"]), max(peak, ours["peak_gflops"])
            for form in forms:
                peers[form].close()
                report.line(f"matmul {form} {shape}", gflops=mine[form], of_peak=mine[form] / peak, dnnl_gflops=theirs[form],
                            ratio=mine[form] / theirs[form])


def compare_attention(options, report):
    for seq in (1024, 4096):
        for form in ("forward", "forward+backward"):
            peer = Peer("attention", options, seq=seq, form=form)
            mine = theirs = peak = 0
            operations = (2 if form == "forward" else 7) * seq * (seq + 1) * 12 * 64
            for _ in range(options.rounds):
                theirs = max(theirs, operations / peer.run()["seconds"] / 1e9)
                for ours in engine(options, "attention", "--seq", str(seq)):
                    if ours["form"] == form:
                        mine, peak = max(mine, ours["gflops"]), max(peak, ours["peak_gflops"])
            peer.close()
            report.line(f"attention {form} T={seq}", gflops=mine, of_peak=mine / peak, torch_gflops=theirs, ratio=mine / theirs)


def compare_step(options, report):
    for batch, seq in ((4, 64), (1, 1024)):
        peers = {name: Peer("step", options, batch=batch, seq=seq, compile=name == "compiled") for name in ("eager", "compiled")}
        times, memory, best = {name: 1e9 for name in peers}, {}, None
        for _ in range(options.rounds):
            for name, peer in peers.items():
                ran = peer.run()
                times[name], memory[name] = min(times[name], 1000 * ran["seconds"]), ran["peak_rss_mib"]
            ours = engine(options, "step", "--batch", str(batch), "--seq", str(seq))[0]
            if best is None or ours["ms"] < best["ms"]:
                best = ours
        for peer in peers.values():
            peer.close()
        report.line(f"step d12 {batch} x {seq}", ms=best["ms"], of_peak=best["gflops"] / best["peak_gflops"],
                    optimizer_of_bandwidth=best["optimizer_gb_per_s"] / best["update_gb_per_s"], eager_ms=times["eager"],
                    compiled_ms=times["compiled"], ratio_eager=times["eager"] / best["ms"], ratio_compiled=times["compiled"] / best["ms"],
                    memory_of_eager=best["peak_rss_mib"] / memory["eager"], memory_of_plan=best["peak_rss_mib"] / best["plan_mib"])
        for passes, mixin in ((2, "uniform"), (3, "uniform"), (3, "off")):
            more = engine(options, "step", "--batch", str(batch), "--seq", str(seq), "--passes", str(passes), "--prefix-mixin", mixin)[0]
            report.line(f"step d12 {batch} x {seq}, {passes} passes, mix-in {mixin}", ms=more["ms"], of_one_pass=more["ms"] / best["ms"])


def compare_decode(options, report):
    for weights in ("f32", "bf16"):
        for batch in (1, 8):
            peer = Peer("decode", options, batch=batch, weights=weights)
            best, theirs, soft_costs = None, 0, []
            for _ in range(options.rounds):
                theirs = max(theirs, batch / peer.run()["seconds"])
                words = ("decode", "--batch", str(batch), "--weights", weights, "--mode")
                ours, soft = engine(options, *words, "standard")[0], engine(options, *words, "soft")[0]
                soft_costs.append(soft["standard_tokens_per_s"] / soft["tokens_per_s"])
                if best is None or ours["tokens_per_s"] > best["tokens_per_s"]:
                    best = ours
            peer.close()
            report.line(f"decode d12 {weights} batch {batch}", tokens_per_s=best["tokens_per_s"],
                        of_bandwidth=best["gb_per_s"] / best["stream_gb_per_s"], torch_tokens_per_s=theirs,
                        ratio=best["tokens_per_s"] / theirs, soft_cost=statistics.median(soft_costs))


def compare_prefill(options, report):
    peer = Peer("prefill", options, seq=1024)
    theirs, best = 1e9, None
    for _ in range(options.rounds):
        theirs = min(theirs, 1000 * peer.run()["seconds"])
        ours = engine(options, "prefill")[0]
        if best is None or ours["ms"] < best["ms"]:
            best = ours
    peer.close()
    report.line("prefill d12, 1024 tokens", ms=best["ms"], of_peak=best["gflops"] / best["peak_gflops"], torch_ms=theirs, ratio=theirs / best["ms"])


COMPARISONS = {"matmul": compare_matmul, "attention": compare_attention, "step": compare_step, "decode": compare_decode, "prefill": compare_prefill}


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*COMPARISONS, []], help="all where none is named")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2, help="about how long each run takes")
    parser.add_argument("--dnnl", default=ctypes.util.find_library("dnnl") or "libdnnl.so", help="oneDNN's library")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    options = parser.parse_args()
    if not os.access("./bench", os.X_OK):
        sys.exit("there is no ./bench here: run `make bench` in the project's root first")
    report = Report(options)
    for name in options.what or COMPARISONS:
        COMPARISONS[name](options, report)


if __name__ == "__main__":
    main()
