/* cmd_import.c - turns an ONNX model, nccl-tests or OSU output, or a framework's trace into data
 * files. */
#include <string.h>

#include "predict/import/import.h"

const struct dl_option dl_import_options[] = {
    {"name", 0, "NAME", "onnx, trace",
     "name of the result; default: from the file's, or from what was measured", false},
    {"dim", 0, "NAME=N", "onnx",
     "number for a symbolic dimension of an input; the first dimension is the batch, 1", true},
    {"skip-unknown", 0, NULL, "onnx", "leave out operators that have no layer, with a warning",
     false},
    {"collective", 0, "NAME", "nccl-tests, osu",
     "all_reduce, all_gather, ...: where the output does not say", false},
    {"nodes", 'n', "N", "nccl-tests, osu", "nodes that took part", false},
    {"ranks", 0, "N", "nccl-tests, osu", "ranks that took part; OSU does not print them", false},
    {"system", 's', "NAME", "nccl-tests, osu, trace",
     "system (or device's system) that it was measured on", false},
    {"library", 0, "NAME", "nccl-tests, osu", "nccl, mpi, gloo, ...; default nccl, of OSU mpi",
     false},
    {"library-version", 0, "TEXT", "nccl-tests, osu",
     "release of the library; nccl-tests may print it", false},
    {"network", 0, "TEXT", "nccl-tests, osu", "network between the nodes, in words", false},
    {"device", 0, "NAME", "nccl-tests, osu, trace", "device; nccl-tests prints it", false},
    {"dtype", 0, "NAME", "osu", "type of the elements; release 7 prints it", false},
    {"placement", 0, "both|out|in", "nccl-tests",
     "rows out of place, in place, or both; default both, for a profile in", false},
    {"profile", 0, "NAME|FILE", "nccl-tests, osu",
     "system whose file, with these times added, is written to -o FILE", false},
    {"workload", 'w', "NAME|FILE", "trace", "whose layers the trace has", false},
    {"framework", 'f', "NAME", "trace",
     "framework, or the part of its name that tells; default pytorch", false},
    {"precision", 'p', "fp32|tf32|mixed|fp16|bf16|fp8", "trace", "of the arithmetic; default fp32",
     false},
    {"batch", 'b', "LIST", "trace", "samples that a device had, one number for each file", false},
    {"quartile", 0, NULL, "trace",
     "of iterations on a CPU the lower quartile instead of the median, where other programs made "
     "some longer",
     false},
    {"steps", 0, "N", "trace",
     "iterations in each trace; default: its ProfilerStep ranges, else how often most layers occur",
     false},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {dl_import_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel import onnx tests/fixtures/onnx/resnet50.onnx --name my-resnet50",
    "dlmodel import nccl-tests tests/fixtures/bench/nccl_2.18_a100.txt --system dgx-a100-40",
    "dlmodel import osu tests/fixtures/bench/osu_5.9_allreduce.txt --system stampede2-skx --nodes "
    "4 --ranks 8",
    "dlmodel import trace tests/fixtures/trace/gpu.json --workload resnet18 --system iris-v100 "
    "--batch 32",
    NULL,
};

static const struct kind {
    const char *name;
    dl_import_fn *import;
} kinds[] = {
    {"onnx", dl_import_onnx},
    {"nccl-tests", dl_import_nccl_tests},
    {"osu", dl_import_osu},
    {"trace", dl_import_trace},
    {NULL, NULL},
};

enum dl_code dl_import_files(const struct dl_options *options, int most, struct dl_err *err) {
    const int count = options->positional_count - 1;
    if (count < 1)
        return dl_fail(err, DL_ERR_USAGE, "import %s: expected a file", options->positional[0]);
    if (count > most)
        return dl_fail(err, DL_ERR_USAGE, "unexpected argument \"%s\"",
                       options->positional[1 + most]);
    return DL_OK;
}

/* An option in the group of another kind is a mistake. */
static enum dl_code check_options(const struct dl_options *options, const char *kind,
                                  struct dl_err *err) {
    for (int i = 0; i < options->given_count; i++) {
        const struct dl_option *o = options->given[i].option;
        bool of_import = false;
        for (const struct dl_option *own = dl_import_options; own->name != NULL; own++)
            of_import = of_import || own == o;
        if (of_import && strstr(o->group, kind) == NULL)
            return dl_fail(err, DL_ERR_USAGE, "--%s: import %s has no such option", o->name, kind);
    }
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    const char *names[8], *all = "";
    int count = 0;
    for (; kinds[count].name != NULL; count++) {
        names[count] = kinds[count].name;
        all = dl_arena_printf(context->arena, "%s%s%s", all, count > 0 ? ", " : "",
                              kinds[count].name);
    }
    names[count] = NULL;
    if (options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "expected what to import: %s", all);
    for (int i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, options->positional[0]) != 0) continue;
        DL_TRY(check_options(options, kinds[i].name, err));
        return kinds[i].import(context, options, err);
    }
    const char *near = dl_suggest(options->positional[0], names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "cannot import '%.60s'; did you mean '%s'?",
                       options->positional[0], near);
    return dl_fail(err, DL_ERR_USAGE, "cannot import '%.60s'; there are %s", options->positional[0],
                   all);
}

const struct dl_command dl_cmd_import = {
    .name = "import",
    .summary = "an ONNX model, nccl-tests or OSU output, or a trace as data files",
    .usage = "onnx|nccl-tests|osu|trace FILE... [options]",
    .purpose = "onnx: a model becomes a workload file. Shapes are inferred from the model's "
               "inputs; parameters are its initializers, tied ones "
               "once, running statistics of batch norms are buffers. Export for training (PyTorch: "
               "training=TrainingMode.TRAINING), so that "
               "batch norms and dropouts are still there. Weights need no data. "
               "nccl-tests, osu: what these tools printed becomes a table as in data/collectives/, "
               "sizes as whole buffers; with --profile "
               "SYSTEM -o FILE the times go into a copy of the system's file, and predictions use "
               "them first. "
               "trace: a Chrome trace of PyTorch's profiler becomes times of layers (dlmodel "
               "schema layers), which predict --layers uses, or "
               "by themselves from data/layers/. Mark layers with record_function: "
               "'layer:NAME:forward' around a module's forward and, "
               "if its hooks can, 'layer:NAME:backward', NAME as in the workload file (that of "
               "import onnx has the names of PyTorch's modules). "
               "Kernels count for the range in which they were launched; without kernels the "
               "range's own time counts, less that of ranges "
               "inside. Without backward ranges, backward operators belong to the forward range "
               "with their sequence number. ProfilerStep ranges "
               "count iterations, Optimizer.step ranges are the update; on a CPU the median "
               "iteration less its layers is. The benchmark programs of dlmodel slurm write such "
               "traces for PyTorch, TensorFlow, Keras, MXNet and Horovod (submit --profile). A "
               "FILE.csv has the columns layer, pass (forward, backward or update) "
               "and time_s.",
    .examples = examples,
    .words = "onnx nccl-tests osu trace",
    .options = tables,
    .exit_notes = "3 when a model has operators that no layer stands for, without --skip-unknown; "
                  "6 for onnx when dlmodel was built "
                  "without protobuf-c",
    .run = run,
};
