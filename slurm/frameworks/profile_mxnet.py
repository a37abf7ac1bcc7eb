"""Times of layers under MXNet. Its profiler does not name layers, so each is run alone, forward and backward, on inputs of the right shape; these
times are then scaled to what forward and backward of the whole network take."""
import time


def timed(mx, call):
    mx.nd.waitall()
    begin = time.perf_counter()
    out = call()
    mx.nd.waitall()
    return out, time.perf_counter() - begin


def walk(mx, blocks, net, x):
    """[(layer, part, seconds)] of one step."""
    values, made, rows = [], [], []
    for i, la in enumerate(net["layers"]):
        ins = [(x if j < 0 else values[j]).copy() for j in la["inputs"]]
        for a in ins:
            a.attach_grad()

        def forward(i=i, ins=ins):
            with mx.autograd.record():
                return blocks[i](*ins)
        out, seconds = timed(mx, forward)
        rows.append((la["name"], "forward", seconds))
        values.append(out.detach())
        made.append(out)
    for i in reversed(range(len(made))):
        _, seconds = timed(mx, lambda out=made[i]: mx.autograd.backward([out]))
        rows.append((net["layers"][i]["name"], "backward", seconds))
    return rows


def layers_of(bench, mx, phases, blocks, x):
    """A function for common.profile. phases(): seconds of forward and backward of the whole network in one step; blocks: a callable for each layer."""
    net = bench.net

    def watch(step, watched):
        found = []
        for _ in range(2):
            walk(mx, blocks, net, x)  # parameters and kernels are made at the first use
        for _ in range(bench.args.steps):
            begin = time.perf_counter()
            step()
            watched.append(time.perf_counter() - begin)
            whole, rows = phases(), walk(mx, blocks, net, x)
            sums = {part: sum(s for _, p, s in rows if p == part) for part in whole}
            found.append([(layer, part, s * whole[part] / sums[part]) for layer, part, s in rows])
        return found
    return watch
