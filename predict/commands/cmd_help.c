/* cmd_help.c - help on commands and topics. The man page and the completion are in manual.c; all
 * are generated from the tables. */
#include <stdio.h>
#include <string.h>

#include "predict/manual/glossary.h"
#include "predict/manual/manual.h"
#include "predict/manual/theory.h"
#include "predict/manual/wrap.h"

enum { NO_SHELL = -1, BASH, ZSH };
static const char *const shells[] = {"bash", "zsh", NULL};
struct asked {
    bool man;
    int shell;
};
#define ASKED(member) struct asked, member

static const struct dl_option help_options[] = {
    {"man", 0, NULL, "Output", "print the man page of dlmodel or of COMMAND, in roff",
     DL_FLAG(ASKED(man))},
    {"completion", 0, "bash|zsh", "Output", "print a completion script for that shell",
     DL_CHOICE(ASKED(shell), .choices = shells)},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {help_options, dl_output_options, NULL};
static const char *const examples[] = {"dlmodel help predict", "dlmodel help units",
                                       "dlmodel help theory F-NCCL", NULL};

const char dl_exit_text[] =
    "Exit status\n"
    "  0  done\n"
    "  1  negative result: out of memory, error above --max-error, no feasible plan\n"
    "  2  invalid command line\n"
    "  3  bad input file: FILE:LINE:COL: error: KEY: what was expected\n"
    "  4  outside the calibrated range, with --strict\n"
    "  5  operating-system error: file, memory, permission\n"
    "  6  a back-end failed: CUDA, cuDNN, NCCL, MPI, Slurm\n";

static const char environment_text[] =
    "Environment\n"
    "  DLMODEL_DATA   directory of data files, searched after --data and before the installed one\n"
    "  DLMODEL_LOCAL  profile that calibrate writes and that the system 'local' names;\n"
    "                 default $XDG_DATA_HOME/dlmodel/local.json, else "
    "~/.local/share/dlmodel/local.json\n"
    "  NO_COLOR       disables colour when set and not empty\n";

static const char models_text[] =
    "--workload gpt:KEY=VALUE,... is a decoder-only transformer; absent keys have the values in "
    "parentheses. Named\n"
    "models ('dlmodel list workloads') take the same keys: llama3_8b:seq=4096,layers=16, or --set "
    "seq=4096.\n"
    "  layers (24)  hidden (1024)  heads (hidden/64)  seq (1024)  vocab (51200)  positions (seq)\n"
    "  kv_heads (heads)          heads of keys and values, shared by heads/kv_heads queries\n"
    "  head_dim (hidden/heads)   channels of a head; rotary (head_dim): how many of them turn\n"
    "  mlp (gelu)                gelu, relu2, swiglu, geglu\n"
    "  ffn                       width of one matrix of the MLP (4*hidden; gated, as Llama has "
    "it,\n"
    "                            8/3*hidden rounded up to a multiple of 256); gated follows from "
    "mlp\n"
    "  norm (layernorm)          layernorm, rmsnorm; post_norm=1: also after attention and MLP; "
    "pre_norm=0: not\n"
    "                            before them\n"
    "  pos (learned)             learned, rope, alibi, none\n"
    "  tied                      1: the output shares the embedding (layernorm: 1, rmsnorm: 0)\n"
    "  bias                      of linear layers (layernorm: 1, rmsnorm: 0); qkv_bias, proj_bias "
    "and norm_bias\n"
    "                            (bias) override it for some\n"
    "  dropout                   (layernorm: 0.1, rmsnorm: 0)\n"
    "  flash (0)                 1: fused attention, unless --attention or the framework selects "
    "another kernel\n"
    "  window (0: all)           keys that a token sees; full_every=N: each N-th layer sees all\n"
    "  head_norm, sinks, parallel (0)  norm of each head of queries and keys; a learned logit a "
    "head; attention\n"
    "                            and MLP side by side; qk_norm=1: one norm of all queries, one of "
    "all keys\n"
    "  experts (0)  topk (2)     experts of a layer, and how many a token goes to\n"
    "  expert_ffn (ffn)          their width; expert_bias (bias), router_bias (0)\n"
    "  capacity (0)              room of an expert / mean number of its tokens; 0: none is "
    "dropped\n"
    "  shared_experts (0)        experts that every token uses; shared_ffn: their width in all; "
    "shared_gate (0)\n"
    "  dense_layers (0)          first layers without experts; moe_every=N: each N-th layer has "
    "experts\n"
    "  kv_rank, q_rank (0)       latent attention (DeepSeek): ranks of keys and values, of "
    "queries; then head_dim\n"
    "                            is that of queries and keys, of which rotary turn, and value_dim "
    "that of values\n"
    "  mtp_layers (0)            layers that predict further tokens, each with a loss "
    "(--mtp-layers)\n"
    "  pattern (0)               kinds of layers in order, over and again: M Mamba-2, * attention, "
    "- MLP, E experts,\n"
    "                            G gated delta rule, L Lightning attention, P attention and "
    "Mamba-2 side by side;\n"
    "                            pattern_mlp=1: each has an MLP or experts, too; attn_gate (0)\n"
    "  ssm_heads (2*hidden/ssm_head_dim)  of Mamba-2: ssm_head_dim (64), ssm_groups (8), ssm_state "
    "(128), ssm_kernel (4),\n"
    "                            ssm_chunk (256), ssm_norm (1), ssm_bias (0), ssm_conv_bias (1)\n"
    "  linear_heads (32)         of linear attention: linear_key_heads (16), linear_key_dim (128), "
    "linear_value_dim (128),\n"
    "                            linear_kernel (4), linear_chunk (64)\n"
    "  vision_layers (0)         layers of a vision tower before the stack; vision_hidden (1024), "
    "vision_heads,\n"
    "                            vision_ffn, vision_pixels (336), vision_patch (14), "
    "vision_channels (3), images (1) in\n"
    "                            a sample; vision_class (1): a token of its class; "
    "vision_positions (1): learned;\n"
    "                            vision_ln_pre (1), vision_bias (0), projector_hidden (hidden), "
    "vision_merge (1): patches\n"
    "                            of a token; patches and vision_seq follow\n";

static const struct topic {
    const char *name, *summary, *text;
} topics[] = {
    {"units", "how to write quantities and lists",
     "Quantities are numbers with an optional unit: 25GB/s, 100Gb/s, 64MiB, 1.5us, 15.7TFLOP/s. "
     "Without one they are SI:\n"
     "seconds, bytes, bytes/s, flop/s. Decimal prefixes (k M G T P E, m u n) are powers of 1000, "
     "binary ones (Ki Mi Gi\n"
     "Ti) powers of 1024; b is a bit, B a byte, and of a count a billion (300B tokens). A LIST is "
     "16, or 1,2,4, or\n"
     "1-4 (every number), or 1-64*2 (doubling).\n"
     "Files carry SI values, with the unit in the key (beta_s_per_byte).\n"},
    {"set", "what-if changes of any field",
     "--set KEY=VALUE changes one field of the system, workload or framework before predicting, "
     "for instance\n"
     "  --set links.inter.bandwidth=25GB/s    --set bucket=50MiB    --set seq=128    --set "
     "input=256x256\n"
     "Dots separate the parts of a key; numbers from 0 select elements of lists; the unit at the "
     "end of a key may be\n"
     "omitted. 'device.KEY' changes the device of the system (device.rates.0.peak); 'system.', "
     "'workload.' and 'framework.'\n"
     "restrict a key to that file. 'dlmodel schema system' lists the keys. An unknown key is an "
     "error.\n"},
    {"models", "language models of any shape: the keys of gpt:", models_text},
    {"files", "where dlmodel searches for systems, workloads and frameworks",
     "A NAME stands for the file NAME.json in systems/, devices/, workloads/ or frameworks/ of the "
     "data directories:\n"
     "--data DIR, $DLMODEL_DATA, the one next to the program, the installed one; the first match "
     "wins. A name with a '/'\n"
     "or with the ending .json is a path. 'local' is the profile that calibrate wrote. 'dlmodel "
     "list systems' lists the\n"
     "systems, 'dlmodel schema system' the fields of their files.\n"},
    {"exit", "exit status", dl_exit_text},
    {"environment", "environment variables", environment_text},
    {"glossary", "the words of the answers; also one: help bottleneck", NULL},
    {NULL, NULL, NULL},
};

const char *dl_option_usage(struct dl_arena *arena, const struct dl_option *o) {
    const char *letter = o->letter != 0 ? dl_arena_printf(arena, "-%c, ", o->letter) : "    ";
    return dl_arena_printf(arena, "%s--%s%s%s", letter, o->name, o->argument != NULL ? " " : "",
                           o->argument != NULL ? o->argument : "");
}

static void add_option(struct dl_text *t, const struct dl_option *o) {
    const char *usage = dl_option_usage(t->arena, o); /* on a separate line when it is long */
    dl_text_printf(t, usage != NULL && strlen(usage) > 32 ? "  %s\n%35s" : "  %-32s %s", usage, "");
    dl_text_wrap(t, o->help, 35, 100);
}

static void grouped_option(struct dl_text *t, const struct dl_option *o, bool first) {
    if (first) dl_text_printf(t, "\n%s\n", o->group);
    add_option(t, o);
}

/* The options that most people need, then the names of the others by group. */
static void common_options(struct dl_text *t, const struct dl_command *command) {
    const struct dl_option *list[DL_MAX_OPTIONS];
    const int count = dl_option_list(command, list);
    const char *group = "", *names = NULL;
    for (int i = 0; i < count; i++) {
        if (command->common != NULL && !dl_has_word(command->common, list[i]->name)) continue;
        grouped_option(t, list[i], strcmp(group, list[i]->group) != 0);
        group = list[i]->group;
    }
    dl_text_printf(t,
                   "\nOther options ('dlmodel %s --help-all' explains "
                   "them)\n",
                   command->name);
    for (int i = 0; i < count; i++) {
        const bool last = i + 1 == count || strcmp(list[i + 1]->group, list[i]->group) != 0;
        if (command->common != NULL && !dl_has_word(command->common, list[i]->name))
            names = dl_arena_printf(t->arena, "%s --%s", names == NULL ? "" : names, list[i]->name);
        if (!last || names == NULL) continue;
        dl_text_printf(t, "  %s\n      ", list[i]->group);
        dl_text_wrap(t, names + 1, 6, 100);
        names = NULL;
    }
}

static void command_help(struct dl_text *t, const struct dl_command *command, bool all) {
    dl_text_printf(t, "dlmodel %s: %s\n\nUsage: dlmodel [global options] %s %s\n\n", command->name,
                   command->summary, command->name, command->usage);
    dl_text_wrap(t, command->purpose, 0, 100);
    if (command->instead != NULL) {
        dl_text_add(t, "\n");
        dl_text_wrap(t, command->instead, 0, 100);
    }
    dl_text_add(t, "\nExamples\n");
    for (int i = 0; command->examples[i] != NULL; i++)
        dl_text_printf(t, "  %s\n", command->examples[i]);
    if (all || command->common == NULL)
        dl_option_each(t, command, grouped_option);
    else
        common_options(t, command);
    dl_text_add(t, "\n");
    dl_text_wrap(
        t,
        dl_arena_printf(t->arena,
                        "Global options: 'dlmodel help'. Exit status: 'dlmodel help exit'%s%s.",
                        command->exit_notes == NULL ? "" : "; here ",
                        command->exit_notes == NULL ? "" : command->exit_notes),
        0, 100);
}

static void overview(struct dl_text *t, const struct dl_context *context) {
    dl_text_add(
        t, "dlmodel: how will training of a deep network scale on a cluster, and what limits it?\n"
           "\n"
           "Usage: dlmodel [global options] COMMAND [options]\n"
           "\n"
           "Commands\n");
    for (int i = 0; context->commands[i] != NULL; i++) {
        dl_text_printf(t, "  %-12s %s\n", context->commands[i]->name,
                       context->commands[i]->summary);
    }
    dl_text_add(t, "\nGlobal options (before the command or after it)\n");
    for (const struct dl_option *o = context->global_options; o != NULL && o->name != NULL; o++)
        add_option(t, o);
    dl_text_add(t, "\n"
                   "Examples\n"
                   "  dlmodel predict --nodes 16\n"
                   "  dlmodel list systems\n"
                   "\n"
                   "'dlmodel COMMAND --help' explains a command, 'dlmodel help TOPIC' a topic:\n");
    for (const struct topic *topic = topics; topic->name != NULL; topic++) {
        dl_text_printf(t, "  %-12s %s\n", topic->name, topic->summary);
    }
    dl_text_add(t, "  theory       the theory manual; theory F-NCCL: one formula\n");
}

/* A command or topic; DL_ERR_USAGE with the nearest of both. */
static enum dl_code about(struct dl_text *t, const struct dl_context *context, const char *name,
                          bool all, struct dl_err *err) {
    const char *names[64];
    int count = 0;
    for (const struct topic *topic = topics; topic->name != NULL; topic++) {
        names[count++] = topic->name;
        if (strcmp(topic->name, name) != 0) continue;
        if (topic->text != NULL)
            dl_text_add(t, topic->text);
        else
            dl_glossary(t);
        return DL_OK;
    }
    for (int i = 0; context->commands[i] != NULL && count < 62; i++) {
        names[count++] = context->commands[i]->name;
        if (strcmp(context->commands[i]->name, name) != 0) continue;
        command_help(t, context->commands[i], all);
        return DL_OK;
    }
    if (dl_glossary_term(t, name)) return DL_OK;
    names[count++] = "theory";
    names[count] = NULL;
    const char *near = dl_suggest(name, names);
    if (near != NULL)
        return dl_fail(err, DL_ERR_USAGE, "no command or topic '%.60s'; did you mean '%s'?", name,
                       near);
    return dl_fail(err, DL_ERR_USAGE, "no command or topic '%.60s'; 'dlmodel help' lists them",
                   name);
}

static enum dl_code man(struct dl_text *t, const struct dl_context *context, const char *name,
                        struct dl_err *err) {
    const struct dl_command *command = NULL;
    if (name == NULL) {
        dl_manual_page(t, context, environment_text);
        return DL_OK;
    }
    DL_TRY(dl_command_find(context->commands, name, &command, err));
    dl_manual_command(t, context, command);
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct asked asked = {.shell = NO_SHELL};
    struct dl_text t = {.arena = context->arena};
    const char *name = options->positional_count > 0 ? options->positional[0] : NULL;
    DL_TRY(dl_options_bind(options, help_options, &asked, err));
    const bool theory = name != NULL && strcmp(name, "theory") == 0 && !asked.man;
    if (options->positional_count > (theory ? 2 : 1) ||
        (asked.shell != NO_SHELL && (asked.man || name != NULL))) {
        return dl_fail(err, DL_ERR_USAGE,
                       "expected one command or topic, theory FORMULA, --man [COMMAND], or "
                       "--completion bash|zsh");
    }
    if (asked.shell == BASH)
        dl_manual_completion(&t, context);
    else if (asked.shell == ZSH)
        dl_manual_zsh(&t, context);
    else if (asked.man)
        DL_TRY(man(&t, context, name, err));
    else if (theory)
        DL_TRY(
            dl_theory_help(&t, options->positional_count > 1 ? options->positional[1] : NULL, err));
    else if (name == NULL)
        overview(&t, context);
    else
        DL_TRY(about(&t, context, name, dl_option_given(options, "help-all"), err));
    return context->output(options, dl_text_string(&t), err);
}

const struct dl_command dl_cmd_help = {
    .name = "help",
    .summary = "explain a command, topic or formula; print man pages and completion",
    .usage = "[COMMAND|TOPIC|theory [FORMULA]] [--man [COMMAND] | --completion bash|zsh]",
    .purpose = "Without arguments, lists the commands and topics; with one, explains it. 'help "
               "theory' prints the theory manual; 'help theory F-NCCL' prints one formula, its "
               "source, its validity and the test that checks it. Completion in bash: source "
               "<(dlmodel help --completion bash); in zsh, after compinit: source <(dlmodel help "
               "--completion zsh).",
    .examples = examples,
    .options = tables,
    .run = run,
};
