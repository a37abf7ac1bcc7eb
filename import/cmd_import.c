/* cmd_import.c - turns an ONNX model, a Hugging Face config, nccl-tests or OSU output, or a
 * framework's trace into data files, and a training run's arguments into a command line of
 * predict. */
#include <string.h>

#include "import/file_kind.h"
#include "import/import.h"

#define RUNS "megatron, nemo, torchtitan, deepspeed, accelerate, composer, maxtext, launch"
#define ASKED(member) struct dl_import_asked, member
static const char *const row_names[] = {"both", "out", "in", NULL};

const struct dl_option dl_import_options[] = {
    {"name", 0, "NAME", "onnx, pt2, config, keras, trace",
     "name of the result; default: derived from the file name or from the measurement",
     DL_TEXT(ASKED(name))},
    {"dim", 0, "NAME=N", "onnx",
     "value of a symbolic dimension of an input; the first dimension is the batch, default 1",
     DL_REPEATED},
    {"skip-unknown", 0, NULL, "onnx, config, " RUNS,
     "skip operators that map to no layer, or members and arguments that are not known, with a "
     "warning, instead of failing",
     DL_FLAG(ASKED(skip_unknown))},
    {"collective", 0, "NAME", "nccl-tests, osu",
     "all_reduce, all_gather, ...; needed where the output does not name it",
     DL_TEXT(ASKED(collective))},
    {"nodes", 'n', "N", "nccl-tests, osu, torch-nccl, log", "number of nodes of the measurement",
     DL_INTEGER(ASKED(nodes), .min = 1, .max = 1000000)},
    {"ranks", 0, "N", "nccl-tests, osu, torch-nccl, log, " RUNS,
     "number of ranks of the measurement, which OSU does not print; devices of a run, where the "
     "file does not say",
     DL_INTEGER(ASKED(ranks), .min = 1, .max = 100000000)},
    {"system", 's', "NAME", "nccl-tests, osu, torch-nccl, trace, log, " RUNS,
     "system of the measurement, or of the printed command", DL_TEXT(ASKED(system))},
    {"library", 0, "NAME", "nccl-tests, osu, torch-nccl",
     "communication library: nccl, mpi, gloo, ...; default nccl, for osu mpi",
     DL_TEXT(ASKED(library))},
    {"library-version", 0, "TEXT", "nccl-tests, osu, torch-nccl",
     "release of the library; default: the one that nccl-tests prints",
     DL_TEXT(ASKED(library_version))},
    {"network", 0, "TEXT", "nccl-tests, osu, torch-nccl",
     "description of the network between nodes", DL_TEXT(ASKED(network))},
    {"device", 0, "NAME", "nccl-tests, osu, torch-nccl, trace",
     "device of the measurement; default: the one that nccl-tests prints", DL_TEXT(ASKED(device))},
    {"dtype", 0, "NAME", "osu", "element type; OSU prints it since release 7",
     DL_TEXT(ASKED(dtype))},
    {"rows", 0, "both|out|in", "nccl-tests",
     "import out-of-place rows, in-place rows or both; default both, with --profile in",
     DL_CHOICE(ASKED(rows), .choices = row_names, .alias = "placement")},
    {"profile", 0, "NAME|FILE", "nccl-tests, osu",
     "write a copy of that system with these times added to -o FILE", DL_TEXT(ASKED(profile))},
    {"workload", 'w', "NAME|FILE", "trace, log, " RUNS,
     "workload whose layers were traced, or which the file of a run names or leaves to a recipe",
     DL_TEXT(ASKED(workload))},
    {"framework", 'f', "NAME", "trace, log, " RUNS,
     "framework, of traces the part of its name that identifies it; default: the one that wrote "
     "the file, pytorch",
     DL_TEXT(ASKED(framework))},
    {"vocab-size", 0, "N", "megatron, nemo",
     "words of the tokenizer before padding, where the file names one that is not known",
     DL_INTEGER(ASKED(vocabulary), .min = 1, .max = 100000000)},
    {"env", 0, "NAME=VALUE", "megatron, nemo, launch",
     "value of a variable that the script takes from its environment", DL_REPEATED},
    {"config", 0, "NAME", "torchtitan",
     "function or variable of a Python configuration, where it has several",
     DL_TEXT(ASKED(config))},
    {"args", 0, "WORDS", "megatron, nemo, launch",
     "arguments of the script, as one word: its $1, $2, ...", DL_TEXT(ASKED(arguments))},
    {"precision", 'p', "fp32|tf32|mixed|fp16|bf16|fp8", "trace, log",
     "arithmetic; default of a trace fp32",
     DL_CHOICE(ASKED(precision), .choices = dl_precision_names)},
    {"batch", 'b', "LIST", "trace, log", "samples per device, of traces one number per file",
     DL_TEXT(ASKED(batch))},
    {"plan", 0, "FILE", "log",
     "script or configuration of the run, where the log does not hold its plan",
     DL_TEXT(ASKED(plan))},
    {"quartile", 0, NULL, "trace",
     "on CPUs use the lower quartile of iterations instead of the median, for runs that other "
     "programs disturbed",
     DL_FLAG(ASKED(quartile))},
    {"steps", 0, "N", "trace",
     "iterations in each trace; default: its ProfilerStep ranges, else the most common number of "
     "runs of a layer",
     DL_INTEGER(ASKED(steps), .min = 1, .max = 1000000)},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {dl_import_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel import onnx tests/fixtures/onnx/resnet50.onnx --name my-resnet50",
    "dlmodel import config tests/fixtures/config/llama.json --name my-llama",
    "dlmodel import nccl-tests tests/fixtures/bench/nccl_2.18_a100.txt --system dgx-a100-40",
    "dlmodel import osu tests/fixtures/bench/osu_5.9_allreduce.txt --system stampede2-skx --nodes "
    "4 --ranks 8",
    "dlmodel import log tests/fixtures/logs/horovod.log --system dgx1-v100",
    "dlmodel import megatron tests/fixtures/runs/megatron.sh --system dgx-a100-80",
    "dlmodel import torchtitan tests/fixtures/runs/torchtitan.toml --workload gpt2_xl",
    "dlmodel import trace tests/fixtures/trace/gpu.json --workload resnet18 --system iris-v100 "
    "--batch 32",
    NULL,
};

static const struct kind {
    const char *name;
    dl_import_fn *import;
} kinds[] = {
    {"onnx", dl_import_onnx},
    {"pt2", dl_import_onnx},
    {"config", dl_import_config},
    {"keras", dl_import_keras},
    {"nccl-tests", dl_import_nccl_tests},
    {"osu", dl_import_osu},
    {"torch-nccl", dl_import_torch_nccl},
    {"trace", dl_import_trace},
    {"log", dl_import_log},
    {"megatron", dl_import_run},
    {"nemo", dl_import_run},
    {"torchtitan", dl_import_run},
    {"deepspeed", dl_import_run},
    {"accelerate", dl_import_run},
    {"composer", dl_import_run},
    {"maxtext", dl_import_run},
    {"launch", dl_import_run},
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

/* An option of another kind's group is an error. */
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

/* The options with the recognized kind inserted before the file name; NULL where no kind fits. */
static const struct dl_options *recognized(struct dl_context *context,
                                           const struct dl_options *options) {
    const char *kind = dl_file_kind(&context->data, options->positional[0], context->arena);
    struct dl_options *all = dl_arena_alloc(context->arena, 1, sizeof *all);
    if (kind == NULL || options->positional_count == DL_MAX_POSITIONAL) return NULL;
    *all = *options;
    memmove(all->positional + 1, options->positional,
            (size_t)options->positional_count * sizeof *all->positional);
    all->positional[0] = kind;
    all->positional_count++;
    context->note(context, "%s: read as %s", options->positional[0], kind);
    return all;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    const char *names[20], *all = "";
    int count = 0;
    for (; kinds[count].name != NULL; count++) {
        names[count] = kinds[count].name;
        all = dl_arena_printf(context->arena, "%s%s%s", all, count > 0 ? ", " : "",
                              kinds[count].name);
    }
    names[count] = NULL;
    if (options->positional_count == 0)
        return dl_fail(err, DL_ERR_USAGE, "expected a kind of file to import: %s", all);
    bool known = false;
    for (int i = 0; i < count; i++)
        known = known || strcmp(kinds[i].name, options->positional[0]) == 0;
    const struct dl_options *found = known ? NULL : recognized(context, options);
    if (found != NULL) options = found;
    for (int i = 0; i < count; i++) {
        if (strcmp(kinds[i].name, options->positional[0]) != 0) continue;
        DL_TRY(check_options(options, kinds[i].name, err));
        struct dl_import_asked asked = {.path = dl_option_text(options, "output")};
        DL_TRY(dl_options_bind(options, dl_import_options, &asked, err));
        return kinds[i].import(context, options, &asked, err);
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
    .summary = "turn a model, measurements, a trace or a run's arguments into inputs of dlmodel",
    .usage = "[onnx|pt2|config|keras|nccl-tests|osu|torch-nccl|trace|log|megatron|nemo|torchtitan|"
             "deepspeed|accelerate|composer|maxtext|launch] FILE... [options]",
    .purpose =
        "Converts FILE to an input of the other commands. Without a kind, FILE is recognized by "
        "what is "
        "in it. What FILE is:\n"
        "onnx: a model, to a workload file. Shapes follow from the model's inputs; its "
        "initializers are the parameters, tied ones counted once; running statistics of batch "
        "norms are buffers. Export the model for training (PyTorch: "
        "training=TrainingMode.TRAINING), so that it keeps batch norms and dropouts. The values "
        "of weights are not needed.\n"
        "config: a config.json of Hugging Face's transformers (llama, mistral, mixtral, qwen2, "
        "qwen3, deepseek_v3, gpt_oss, gemma, phi3, nemotron, mpt, gpt2, gpt_neox, bert and "
        "relatives), to a workload that extends gpt or bert_base. A member that might change the "
        "work and is not known is an error.\n"
        "pt2: a torch.export archive, to a workload file of one sample; weights are not read.\n"
        "keras: model.to_json() of Keras 2 or 3, or a .keras archive, to a workload file.\n"
        "torch-nccl: the collectives in torch.profiler's traces (PyTorch 2), as the next: the "
        "median of equal calls, of several ranks' traces the least.\n"
        "nccl-tests, osu: the printed output, to a table as in data/collectives/, with sizes of "
        "whole buffers. With --profile SYSTEM -o FILE, adds the times to a copy of the system's "
        "file, where predictions prefer them to the model.\n"
        "trace: a Chrome trace of PyTorch's profiler, to layer times (dlmodel schema layers) for "
        "predict --layers; predictions find files in data/layers/ by themselves. Mark layers with "
        "record_function: 'layer:NAME:forward' around a module's forward and, if its hooks allow, "
        "'layer:NAME:backward', with NAME as in the workload file (import onnx keeps the names of "
        "PyTorch's modules). A kernel counts for the range that launched it; without kernels the "
        "range's own time counts, less nested ranges. Without backward ranges, backward operators "
        "belong to the forward range with the same sequence number. ProfilerStep ranges count "
        "iterations, and Optimizer.step ranges are the update; on a CPU the update is the median "
        "iteration less its layers. dlmodel slurm submit --profile writes such traces. A FILE.csv "
        "has the "
        "columns layer, pass (forward, backward or update) and time_s. A profile of Nsight "
        "Systems with such ranges of NVTX is read from its export (nsys export --type sqlite) or "
        "from nsys stats --report nvtx_gpu_proj_sum --format csv, whose times include the gaps "
        "between a range's kernels.\n"
        "log: what a training printed - Megatron-LM, NeMo, torchtitan, nanotron, llm-foundry, "
        "DeepSpeed, MaxText, Transformers, PyTorch Lightning, Keras, tf_cnn_benchmarks, Horovod's "
        "synthetic benchmark, MLPerf's :::MLLOG - to a table of runs (dlmodel schema runs): the "
        "median after warm-up, its 10th and 90th percentiles, the number of steps, and of the plan "
        "what the log says; options and --plan FILE say the rest. compare and --measured take a "
        "log "
        "directly. Of nvidia-smi's and dcgmi's power: the median of a device at work.\n"
        "megatron, nemo, torchtitan: a training run - a launch script of Megatron-LM or "
        "Megatron-DeepSpeed, the table of arguments that such a run prints when it starts (the "
        "most reliable: give the log), YAML of Megatron's tests, NeMo and Megatron-Bridge, "
        "torchtitan's TOML or Python configuration. Prints the command line of predict for the "
        "same model and plan, or with --json its parts. Nothing of the file is executed: "
        "variables, arrays, functions, "
        "conditions and arithmetic of a script are evaluated where the file determines them; "
        "assumptions are listed (--env sets a variable, --args the script's arguments, --ranks "
        "the number of devices). A recipe is known by its name; what it decides beyond the file "
        "is said. Three lists follow: arguments that are taken, that cost no time, and that would "
        "change the prediction and are not modelled. An argument that looks like a degree, a "
        "precision, a compiler or an offload and is not known is an error. predict --export "
        "writes such files.",
    .examples = examples,
    .words = "onnx pt2 config keras nccl-tests osu torch-nccl trace log megatron nemo torchtitan "
             "deepspeed "
             "accelerate "
             "composer maxtext launch",
    .options = tables,
    .exit_notes =
        "3 when a model has operators that map to no layer, without --skip-unknown; 6 for "
        "onnx when dlmodel was built without protobuf-c",
    .run = run,
};
