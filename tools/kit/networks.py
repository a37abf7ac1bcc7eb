"""networks.py - the networks that the GPU kit trains, in plain PyTorch, with the layers and names of dlmodel's workloads.

make(workload) builds what tables of runs call `workload`."""
import math

import torch
from torch import nn
from torch.nn import functional as F

class Add(nn.Module):
    def forward(self, x, y):
        return x + y


class Attention(nn.Module):
    """softmax(q k' / sqrt(d)) v of [batch, tokens, heads * d]; fewer heads of k and v are repeated."""

    def __init__(self, heads, kv_heads, causal, dropout=0.0):
        super().__init__()
        self.heads, self.kv_heads, self.causal, self.dropout = heads, kv_heads, causal, dropout

    def forward(self, q, k, v):
        q = q.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (t.unflatten(-1, (self.kv_heads, -1)).transpose(1, 2).repeat_interleave(self.heads // self.kv_heads, 1) for t in (k, v))
        if hasattr(F, "scaled_dot_product_attention"):
            y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=self.causal)
        else:  # before PyTorch 2.0
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if self.causal:
                scores = scores + torch.full(scores.shape[-2:], float("-inf"), device=q.device, dtype=scores.dtype).triu(1)
            y = F.dropout(scores.softmax(-1), self.dropout, self.training) @ v
        return y.transpose(1, 2).flatten(2)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1, self.relu1 = nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.conv2, self.bn2, self.relu2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        self.conv3, self.bn3, self.relu = nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width), nn.ReLU(inplace=True)
        self.downsample, self.add = None, Add()
        if stride != 1 or inputs != 4 * width:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = self.relu1(self.bn1(self.conv1(x)))
        y = self.bn3(self.conv3(self.relu2(self.bn2(self.conv2(y)))))
        return self.relu(self.add(y, x if self.downsample is None else self.downsample(x)))


class ResNet50(nn.Module):
    """ResNet-50 v1.5."""

    optimizer = "momentum"

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.relu = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)
        self.maxpool, inputs = nn.MaxPool2d(3, 2, 1), 64
        for i, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512))):
            stage = []
            for block in range(blocks):
                stage.append(Bottleneck(inputs, width, 2 if block == 0 and i > 0 else 1))
                inputs = 4 * width
            setattr(self, "layer%d" % (i + 1), nn.Sequential(*stage))
        self.avgpool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2048, 1000)

    def forward(self, x, classes):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return F.cross_entropy(self.fc(self.avgpool(x).flatten(1)), classes)

    def batch(self, samples, device):
        return torch.randn(samples, 3, 224, 224, device=device), torch.randint(0, 1000, (samples,), device=device)


class VitLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.ln_1, self.in_proj = nn.LayerNorm(hidden, 1e-6), nn.Linear(hidden, 3 * hidden)
        self.self_attention, self.out_proj, self.add1 = Attention(heads, heads, False), nn.Linear(hidden, hidden), Add()
        self.ln_2, self.add2 = nn.LayerNorm(hidden, 1e-6), Add()
        self.mlp = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Identity(), nn.Linear(4 * hidden, hidden))

    def forward(self, x):
        x = self.add1(self.out_proj(self.self_attention(*self.in_proj(self.ln_1(x)).chunk(3, -1))), x)
        return self.add2(self.mlp(self.ln_2(x)), x)


class Vit(nn.Module):
    """Vision Transformer, base, patches of 16 x 16."""

    optimizer = "adam"

    def __init__(self):
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 768, 16, 16)
        self.class_token, self.pos_embedding = nn.Parameter(torch.zeros(1, 1, 768)), nn.Parameter(torch.zeros(1, 197, 768))
        self.encoder = nn.Sequential(*[VitLayer(768, 12) for _ in range(12)])
        self.ln, self.head = nn.LayerNorm(768, 1e-6), nn.Linear(768, 1000)

    def forward(self, x, classes):
        x = self.conv_proj(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], 1) + self.pos_embedding
        return F.cross_entropy(self.head(self.ln(self.encoder(x))[:, 0]), classes)

    batch = ResNet50.batch


class BertLayer(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.query, self.key, self.value = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        self.attention, self.output, self.dropout1 = Attention(heads, heads, False, 0.1), nn.Linear(hidden, hidden), nn.Dropout(0.1)
        self.add1, self.ln1 = Add(), nn.LayerNorm(hidden, 1e-12)
        self.intermediate, self.gelu, self.ffn_output = nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden)
        self.dropout2, self.add2, self.ln2 = nn.Dropout(0.1), Add(), nn.LayerNorm(hidden, 1e-12)

    def forward(self, x):
        y = self.output(self.attention(self.query(x), self.key(x), self.value(x)))
        x = self.ln1(self.add1(self.dropout1(y), x))
        return self.ln2(self.add2(self.dropout2(self.ffn_output(self.gelu(self.intermediate(x)))), x))


class BertLarge(nn.Module):
    """BERT large with pooler and the two heads of pre-training, 128 tokens, every one of which is predicted."""

    optimizer = "adam"

    def __init__(self):
        super().__init__()
        hidden = 1024
        self.word_embeddings, self.position_embeddings = nn.Embedding(30522, hidden), nn.Embedding(512, hidden)
        self.token_type_embeddings, self.ln, self.dropout = nn.Embedding(2, hidden), nn.LayerNorm(hidden, 1e-12), nn.Dropout(0.1)
        self.encoder = nn.Sequential(*[BertLayer(hidden, 16) for _ in range(24)])
        self.pooler = nn.Linear(hidden, hidden)
        self.cls = nn.ModuleDict({"transform": nn.Linear(hidden, hidden), "gelu": nn.GELU(), "ln": nn.LayerNorm(hidden, 1e-12),
                                  "decoder": nn.Linear(hidden, 30522)})
        self.cls["decoder"].weight = self.word_embeddings.weight
        self.nsp = nn.Linear(hidden, 2)

    def forward(self, tokens, words, follows):
        at = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word_embeddings(tokens) + self.position_embeddings(at) + self.token_type_embeddings(torch.zeros_like(tokens))
        x = self.encoder(self.dropout(self.ln(x)))
        logits = self.cls["decoder"](self.cls["ln"](self.cls["gelu"](self.cls["transform"](x))))
        return F.cross_entropy(logits.flatten(0, 1), words.flatten()) + F.cross_entropy(self.nsp(torch.tanh(self.pooler(x[:, 0]))), follows)

    def batch(self, samples, device):
        tokens = torch.randint(0, 30522, (samples, 128), device=device)
        return tokens, tokens, torch.randint(0, 2, (samples,), device=device)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        if hasattr(F, "rms_norm"):
            return F.rms_norm(x, x.shape[-1:], self.weight, 1e-5)
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


class Rope(nn.Module):
    """Rotates pairs of elements of each head of q and k."""

    def __init__(self, width, tokens):
        super().__init__()
        angles = torch.outer(torch.arange(tokens).float(), 10000.0 ** (-torch.arange(0, width, 2).float() / width))
        angles = torch.cat([angles, angles], -1)
        self.width = width
        self.register_buffer("cos", angles.cos()[None, :, None], persistent=False)
        self.register_buffer("sin", angles.sin()[None, :, None], persistent=False)

    def forward(self, x):
        y = x.unflatten(-1, (-1, self.width))
        one, two = y.chunk(2, -1)
        return (y * self.cos + torch.cat([-two, one], -1) * self.sin).to(x.dtype).flatten(2)


class Swiglu(nn.Module):
    def forward(self, x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up


class Mlp(nn.Module):
    def __init__(self, hidden, ffn):
        super().__init__()
        self.fc1, self.swiglu, self.fc2 = nn.Linear(hidden, 2 * ffn, bias=False), Swiglu(), nn.Linear(ffn, hidden, bias=False)
        self.add = Add()

    def forward(self, x):
        return self.fc2(self.swiglu(self.fc1(x)))


class Moe(nn.Module):
    """Experts one after the other, each on the tokens that the router sends it: what PyTorch without further libraries offers."""

    def __init__(self, hidden, ffn, experts, topk):
        super().__init__()
        self.router, self.topk = nn.Linear(hidden, experts, bias=False), topk
        self.experts = nn.ModuleList(Mlp(hidden, ffn) for _ in range(experts))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        weights, chosen = self.router(tokens).float().softmax(-1).topk(self.topk, -1)
        weights = (weights / weights.sum(-1, keepdim=True)).to(x.dtype)
        y = torch.zeros_like(tokens)
        for i, expert in enumerate(self.experts):
            row, place = (chosen == i).nonzero(as_tuple=True)
            y.index_add_(0, row, (expert(tokens[row]) * weights[row, place, None]).to(y.dtype))
        return y.view_as(x)


class GptLayer(nn.Module):
    def __init__(self, w):
        super().__init__()
        hidden, heads = w["hidden"], w["heads"]
        kv_heads, width = w.get("kv_heads", heads), hidden // heads
        self.widths = [hidden, kv_heads * width, kv_heads * width]
        self.ln_1, self.ln_2 = RmsNorm(hidden), RmsNorm(hidden)
        self.attn = nn.ModuleDict({"qkv": nn.Linear(hidden, sum(self.widths), bias=False), "rope": Rope(width, w["seq"]),
                                   "core": Attention(heads, kv_heads, True), "proj": nn.Linear(hidden, hidden, bias=False), "add": Add()})
        experts = w.get("experts", 1)
        self.moe = experts > 1
        self.mlp = nn.ModuleDict({"moe": Moe(hidden, w.get("expert_ffn", w["ffn"]), experts, w["topk"]), "add": Add()}) if self.moe else Mlp(hidden, w["ffn"])

    def forward(self, x):
        a = self.attn
        q, k, v = a["qkv"](self.ln_1(x)).split(self.widths, -1)
        x = a["add"](a["proj"](a["core"](a["rope"](q), a["rope"](k), v)), x)
        y = self.ln_2(x)
        return self.mlp["add"](self.mlp["moe"](y), x) if self.moe else self.mlp.add(self.mlp(y), x)


class Gpt(nn.Module):
    """Decoder of a `gpt:` workload with rmsnorm, rope and swiglu."""

    optimizer = "adam"

    def __init__(self, workload):
        super().__init__()
        pairs = dict(p.split("=") for p in workload[len("gpt:"):].split(","))
        form = {"mlp": "swiglu", "norm": "rmsnorm", "pos": "rope"}
        if any(pairs.get(k) != v for k, v in form.items()):
            raise ValueError("%s: expected mlp=swiglu,norm=rmsnorm,pos=rope" % workload)
        self.w = w = {k: int(v) for k, v in pairs.items() if k not in form}
        self.wte = nn.Embedding(w["vocab"], w["hidden"])
        self.h = nn.Sequential(*[GptLayer(w) for _ in range(w["layers"])])
        self.ln_f, self.logits = RmsNorm(w["hidden"]), nn.Linear(w["hidden"], w["vocab"], bias=False)
        if w.get("tied", 1):
            self.logits.weight = self.wte.weight
        for p in self.parameters():  # PyTorch's own start of an embedding is too wide for a tied one
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens, words):
        return F.cross_entropy(self.logits(self.ln_f(self.h(self.wte(tokens)))).flatten(0, 1), words.flatten())

    def batch(self, samples, device):
        tokens = torch.randint(0, self.w["vocab"], (samples, self.w["seq"]), device=device)
        return tokens, tokens


def make(workload):
    if workload.startswith("gpt:"):
        return Gpt(workload)
    return {"resnet50": ResNet50, "vit_b_16": Vit, "bert_large": BertLarge}[workload]()
