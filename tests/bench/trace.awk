# trace.awk - a profiler's trace of any length: awk -v steps=N [-v cpu=1] -f trace.awk (24 kB a step; 43,000 steps are 1 GB)
# Twenty layer ranges a step with operators and, on a GPU (the default), their launches; the backward operators on a thread of their
# own, linked by sequence numbers; kernels of a step after all that launched them, out of order.
function event(cat, name, tid, ts, dur, args) {
    printf "%s\n{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 7, \"tid\": %d, \"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
        separator, cat, name, tid, ts, dur, args
    separator = ","
}
BEGIN {
    split("conv1 bn1 layer1.0.conv1 layer1.0.bn1 layer1.0.conv2 layer1.0.bn2 layer1.1.conv1 layer1.1.bn1 layer1.1.conv2 layer1.1.bn2 layer2.0.conv1 layer2.0.bn1 layer2.0.conv2 layer2.0.bn2 layer2.1.conv1 layer2.1.bn1 layer3.0.conv1 layer4.0.conv1 layer4.1.conv2 fc", layers, " ")
    print "{\"schemaVersion\": 1, \"traceEvents\": ["
    for (s = 0; s < steps; s++) {
        begin = 1e6 + s * 1e5
        event("user_annotation", "ProfilerStep#" s, 1, begin, 90000 + s * 7919 % 5003 / 10, "")
        for (i = 1; i <= 20; i++) {
            at = begin + i * 2000
            seq = s * 20 + i
            event("user_annotation", "layer:" layers[i] ":forward", 1, at, 900 + (s * 31 + i * 17) % 211 / 7, "")
            event("cpu_op", "aten::op" i, 1, at + 10, 500, "\"Sequence number\": " seq ", \"External id\": " seq)
            event("cpu_op", "autograd::engine::evaluate_function: OpBackward" i, 2, begin + 50000 + (20 - i) * 1500, 700 + (s * 13 + i) % 97 / 3,
                "\"Sequence number\": " seq ", \"Fwd thread id\": 1")
            if (cpu) continue
            event("cuda_runtime", "cudaLaunchKernel", 1, at + 20, 6, "\"correlation\": " 2 * seq)
            event("cuda_runtime", "cudaLaunchKernel", 2, begin + 50000 + (20 - i) * 1500 + 20, 6, "\"correlation\": " 2 * seq + 1)
        }
        event("cpu_op", "Optimizer.step#SGD.step", 1, begin + 88000, 1000, "")
        for (i = 20; i >= 1 && !cpu; i--) {
            seq = s * 20 + i
            event("kernel", "gemm_kernel", 9, begin + i * 2100, 300 + (s * 41 + i * 7) % 301 / 11, "\"correlation\": " 2 * seq)
            event("kernel", "gemm_backward_kernel", 9, begin + 50000 + i * 1000, 600 + (s * 43 + i * 5) % 307 / 13, "\"correlation\": " 2 * seq + 1 + (i == 3 ? 4e9 : 0))
        }
    }
    print "\n]}"
}
