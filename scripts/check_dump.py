#!/usr/bin/env python3
"""Checks one training step's losses and gradients against an independent implementation.

    ./train --dump step.safetensors …       the engine writes a batch, its parameters, losses and gradients
    python3 scripts/check_dump.py step.safetensors [--tolerance 1e-4]

The model here is written from docs/model.md and docs/passes.md in PyTorch, in float64, with autograd; every pass is computed
whole, without reuse of the prefix. Prints, for every loss and gradient, the relative error ‖a − b‖ / ‖b‖; exits with
status 1 where one is above the tolerance. Needs torch and numpy.

A gradient may be zero, or nearly, because what is summed cancels: that of a query whose window holds one key, or of a loss
that is nearly gone. Float32 then leaves the rounding of the summands, whatever the sum. How much that is, is measured:
everything is computed again with each summand, forward and backward, off by a random rounding. A sum of n terms rounds n
times, which adds up as the root of n. So much, six times over, an error may be, however small b.
"""
import argparse
import json
import re
import sys


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump", help="what ./train --dump wrote")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest relative error allowed (default 1e-4)")
    return parser.parse_args()


ARGUMENTS = arguments() if __name__ == "__main__" else None  # --help needs nothing that may be missing

try:
    import numpy as np
    import torch
    import torch.nn.functional as functional
except ImportError as missing:
    sys.exit(f"check_dump: {missing}; pip install torch numpy")

UNIT = 2.0**-24  # of rounding to float32
DRAWS = 4  # of random roundings
MARGIN = 6  # between what rounding does on average and what is an error
GENERATOR = torch.Generator().manual_seed(1)
DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32, "U8": np.uint8}


def read_safetensors(path):
    """{name: array}, {metadata}.  The format: header length (u64), header (JSON), the tensors' bytes."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


class Rounding(torch.autograd.Function):
    """A value that is off by a random rounding to float32, and its gradient on the way back by another."""

    @staticmethod
    def off(x):
        return x * (1 + UNIT * (2 * torch.rand(x.shape, dtype=x.dtype, generator=GENERATOR) - 1))

    @staticmethod
    def forward(_, x):
        return Rounding.off(x)

    @staticmethod
    def backward(_, gradient):
        return Rounding.off(gradient)


class Settings:
    """The model's sizes and choices, from the dump's metadata."""

    def __init__(self, metadata):
        whole = lambda name, default=0: int(float(metadata.get(name, default)))
        real = lambda name, default: float(metadata.get(name, default))
        truth = lambda name: metadata.get(name, "").lower() in ("1", "true", "yes", "on")
        self.layers = whole("num_hidden_layers")
        self.width = whole("hidden_size")
        self.heads = whole("num_attention_heads")
        self.kv_heads = whole("num_key_value_heads", self.heads)
        self.head_dim = whole("head_dim", self.width // self.heads)
        self.theta = real("rope_theta", 10000)
        self.eps = real("rms_norm_eps", 1e-6)
        self.alpha = real("residual_scale", (2 * self.layers) ** -0.5)
        self.feedback_lambda = real("feedback_lambda", 1)
        self.window = whole("sliding_window")
        self.full_every = whole("full_attention_every")
        self.z_loss = real("z_loss", 0)
        self.raw = metadata.get("plain_input") == "raw"
        self.fusion = metadata.get("fusion", "gate")
        self.head_gate = truth("head_gate")
        self.branch_norm = truth("branch_norm")
        self.last = metadata.get("gradient") == "last"
        self.detach = truth("detach") or metadata.get("gradient") == "detach" or self.last

    def layer_window(self, layer):
        full = self.full_every > 0 and (layer + 1) % self.full_every == 0
        return 0 if full else self.window


class Batch:
    """Tokens in B rows of T; where each position stands in its segment, and how many of a segment's are plain in pass k."""

    def __init__(self, tensors):
        self.tokens = torch.tensor(tensors["tokens"].astype(np.int64))
        self.targets = torch.tensor(tensors["targets"].astype(np.int64))
        rows, length = self.tokens.shape
        starts = torch.zeros(rows, length, dtype=torch.bool)
        starts[:, 0] = True
        if "segment_ids" in tensors:
            ids = torch.tensor(tensors["segment_ids"].astype(np.int64)).reshape(rows, length)
            starts[:, 1:] = ids[:, 1:] != ids[:, :-1]
        self.segment = starts.flatten().cumsum(0).reshape(rows, length) - 1
        column = torch.arange(length).expand(rows, length)
        self.position = column - torch.where(starts, column, 0).cummax(1).values
        self.passes = 1 + sum(bool(re.fullmatch(r"prefix\.\d+", name)) for name in tensors)
        self.prefix = {k: torch.tensor(tensors[f"prefix.{k}"].astype(np.int64)) for k in range(2, self.passes + 1)}
        for k, prefix in self.prefix.items():
            segments = int(self.segment.max()) + 1
            if len(prefix) != segments:
                sys.exit(f"prefix.{k} has {len(prefix)} entries for {segments} segments")

    def plain(self, k):
        return self.position < self.prefix[k][self.segment]


class Reference:
    """The model; `rounded` is called wherever a value enters a sum, and returns it as it is or off by a rounding."""

    def __init__(self, settings, parameters, batch, rounded):
        self.s, self.p, self.b, self.rounded = settings, parameters, batch, rounded
        frequency = settings.theta ** (-torch.arange(0, settings.head_dim, 2, dtype=torch.float64) / settings.head_dim)
        angle = batch.position[:, :, None, None] * frequency
        self.cos, self.sin = angle.cos(), angle.sin()  # B, T, 1, d/2

    def norm(self, x, name):
        rrms = torch.rsqrt(self.rounded(x).square().mean(-1, keepdim=True) + self.s.eps)
        return self.rounded(self.rounded(x) * rrms) * self.p[name + ".weight"]

    def product(self, x, name):
        return self.rounded(x) @ self.p[name + ".weight"].T

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * self.cos - b * self.sin, b * self.cos + a * self.sin], -1)

    def visible(self, layer):
        """B, T queries, T keys: the same segment, not later, within the window."""
        distance = self.b.position[:, :, None] - self.b.position[:, None, :]
        seen = (self.b.segment[:, :, None] == self.b.segment[:, None, :]) & (distance >= 0)
        window = self.s.layer_window(layer)
        return seen & (distance < window) if window > 0 else seen

    def attention(self, x, layer):
        s, name = self.s, f"model.layers.{layer}.self_attn."
        split = lambda y, heads: y.unflatten(-1, (heads, s.head_dim))
        q = split(self.product(x, name + "q_proj"), s.heads)
        k = split(self.product(x, name + "k_proj"), s.kv_heads)
        v = split(self.product(x, name + "v_proj"), s.kv_heads)
        q, k = self.rotate(self.norm(q, name + "q_norm")), self.rotate(self.norm(k, name + "k_norm"))
        group = s.heads // s.kv_heads
        k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
        scores = torch.einsum("bthd,bshd->bhts", self.rounded(q), self.rounded(k)) / s.head_dim**0.5
        scores = self.rounded(scores).masked_fill(~self.visible(layer)[:, None], -torch.inf)
        # The softmax written out: the gradients of its sum and of its terms cancel.
        p = (scores - scores.detach().amax(-1, keepdim=True)).exp()
        y = torch.einsum("bhts,bshd->bthd", self.rounded(p), self.rounded(v))
        y = y / self.rounded(p).sum(-1).transpose(1, 2)[..., None]
        if s.head_gate:
            y = self.rounded(y) * self.product(x, name + "head_gate").sigmoid()[..., None]
        return self.product(y.flatten(-2), name + "o_proj")

    def mlp(self, x, layer):
        name = f"model.layers.{layer}.mlp."
        gate, up = self.product(x, name + "gate_proj"), self.product(x, name + "up_proj")
        return self.product(functional.silu(self.rounded(gate)) * self.rounded(up), name + "down_proj")

    def residual(self, x, branch):
        return self.rounded(x) + self.s.alpha * self.rounded(branch)

    def stack(self, x):
        for layer in range(self.s.layers):
            name = f"model.layers.{layer}."
            branch = self.attention(self.norm(x, name + "input_layernorm"), layer)
            x = self.residual(x, self.norm(branch, name + "post_attn_norm") if self.s.branch_norm else branch)
            branch = self.mlp(self.norm(x, name + "post_attention_layernorm"), layer)
            x = self.residual(x, self.norm(branch, name + "post_mlp_norm") if self.s.branch_norm else branch)
        return self.norm(x, "model.norm")

    def fused(self, embedding, carried):
        name, token = "latent_feedback.", self.norm(embedding, "model.input_norm")
        if self.s.fusion == "add":
            mixed = self.rounded(token) + self.rounded(self.product(carried, name + "add"))
        elif self.s.fusion == "concat":
            both = torch.cat([token, carried], -1)
            linear = lambda part: self.rounded(self.product(both, name + part)) + self.p[name + part + ".bias"]
            mixed = linear("concat_value") * linear("concat_gate").sigmoid()
        else:
            gate = self.product(token, name + "gate").sigmoid()
            mixed = self.rounded(self.product(carried, name + "value")) * self.rounded(gate)
        return self.norm(mixed, "model.input_norm")

    def losses(self):
        """(mean cross-entropy, mean squared logsumexp) of each pass, over the positions that have a target."""
        readout = self.p["model.embed_tokens.weight"]
        embedding = readout[self.b.tokens]
        plain = embedding if self.s.raw else self.norm(embedding, "model.input_norm")
        has_target = self.b.targets >= 0
        h, result = None, []
        for k in range(1, self.b.passes + 1):
            with torch.set_grad_enabled(not self.s.last or k == self.b.passes):
                u = plain
                if k > 1:
                    state = h.detach() if self.s.detach else h
                    carried = torch.cat([torch.zeros_like(state[:, :1]), state[:, :-1]], 1)
                    u = torch.where(self.b.plain(k)[..., None], plain, self.fused(embedding, carried))
                h = self.stack(u)
                logits = self.rounded(h[has_target]) @ readout.T
                lse = self.rounded(logits).logsumexp(-1)
                loss = lse - self.rounded(logits).gather(1, self.b.targets[has_target][:, None])[:, 0]
                result.append((loss.mean(), lse.square().mean()))
        return result

    def objective(self, losses):
        whole = [loss + self.s.z_loss * z for loss, z in losses]
        if self.s.last or len(whole) == 1:
            return whole[-1]
        return whole[0] + self.s.feedback_lambda * sum(whole[1:]) / (len(whole) - 1)


def computed(settings, batch, parameters, rounded):
    """{name: array} of every loss and gradient."""
    model = Reference(settings, parameters, batch, rounded)
    losses = model.losses()
    gradients = torch.autograd.grad(model.objective(losses), list(parameters.values()), allow_unused=True)
    result = {f"loss.{k}": loss.detach().numpy().reshape(1) for k, (loss, _) in enumerate(losses, 1)}
    for (name, parameter), gradient in zip(parameters.items(), gradients):
        result["grad." + name] = np.zeros(parameter.shape) if gradient is None else gradient.numpy()
    return result


def relative_error(got, want, least):
    """‖got − want‖ / ‖want‖, or where that is more, / least."""
    if got is None or got.shape != want.shape:
        return np.inf
    error, size = np.linalg.norm(got.astype(np.float64) - want), max(np.linalg.norm(want), least)
    if error == 0:
        return 0.0
    error = error / size if size > 0 else np.inf
    return error if np.isfinite(error) else np.inf


def compare(tensors, settings, batch, tolerance):
    """Yields (name, relative error) of every loss and gradient."""
    special = re.compile(r"(grad\..*|tokens|targets|segment_ids|prefix\.\d+|loss\.\d+)")
    parameters = {
        name: torch.tensor(value.astype(np.float64), requires_grad=True)
        for name, value in tensors.items()
        if not special.fullmatch(name)
    }
    exact = computed(settings, batch, parameters, lambda x: x)
    draws = [computed(settings, batch, parameters, Rounding.apply) for _ in range(DRAWS)]
    terms = max(settings.width, settings.head_dim)  # of a logit, of a score
    for name, want in exact.items():
        got = tensors.get(name)
        if got is None and (not np.any(want) or name.startswith("loss.") and settings.last):
            continue  # a parameter that takes no part needs no gradient, a pass that is not trained no loss
        rounding = np.sqrt(terms * np.mean([np.square(draw[name] - want).sum() for draw in draws]))
        yield name, relative_error(got, want, MARGIN * rounding / tolerance)


def main():
    tensors, metadata = read_safetensors(ARGUMENTS.dump)
    settings, batch = Settings(metadata), Batch(tensors)
    results = list(compare(tensors, settings, batch, ARGUMENTS.tolerance))
    for name, error in results:
        print(f"{error:9.2e}  {name}" + ("   ABOVE THE TOLERANCE" if error > ARGUMENTS.tolerance else ""))
    worst_name, worst = max(results, key=lambda result: result[1])
    failed = sum(error > ARGUMENTS.tolerance for _, error in results)
    print(f"{len(results)} compared, {failed} above {ARGUMENTS.tolerance:g}; worst {worst:.2e} ({worst_name})")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
