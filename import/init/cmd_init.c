/* cmd_init.c - `dlmodel init`: a system file, and a site file for Slurm, for the user's cluster,
 * from six answers, options, or the output of tools. Missing values are those of the usual machine
 * with this device, and are marked. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/init/machine_facts.h"
#include "model/catalog/command.h"
#include "model/catalog/node_class.h"
#include "model/core/file.h"
#include "model/core/text.h"

struct answers {
    const char *name, *device, *network, *partition, *site_output;
    int64_t nodes, devices_per_node;
    bool detect, ask;
};
#define ANSWER(member) struct answers, member

static const struct dl_option init_options[] = {
    {"name", 0, "NAME", "Cluster", "name of the system; default cluster", DL_TEXT(ANSWER(name))},
    {"device", 0, "NAME", "Cluster", "GPU: a name of 'dlmodel list devices', h100, a100_sxm4_80",
     DL_TEXT(ANSWER(device))},
    {"devices-per-node", 'g', "N", "Cluster",
     "GPUs of a node; default: those of the usual machine of this GPU",
     DL_INTEGER(ANSWER(devices_per_node), .min = 1, .max = 1024)},
    {"nodes", 'n', "N", "Cluster", "number of nodes; default 1",
     DL_INTEGER(ANSWER(nodes), .min = 1, .max = 10000000)},
    {"network", 0, "[Nx]RATE [KIND]", "Cluster",
     "adapters of a node, their rate, and infiniband, roce or ethernet: '8x400Gb/s infiniband'; "
     "default: that of the usual machine of this GPU",
     DL_TEXT(ANSWER(network))},
    {"partition", 0, "NAME", "Cluster", "Slurm partition, for the site file",
     DL_TEXT(ANSWER(partition))},
    {"site-output", 0, "FILE", "Cluster", "also write a site file for 'dlmodel slurm'",
     DL_TEXT(ANSWER(site_output))},
    {"detect", 0, NULL, "Cluster",
     "run scontrol show node, nvidia-smi and ibstat where they exist; on a terminal always",
     DL_FLAG(ANSWER(detect))},
    {"ask", 0, NULL, "Cluster", "ask on standard input even if it is no terminal",
     DL_FLAG(ANSWER(ask))},
    {.name = NULL},
};
static const struct dl_option *const tables[] = {init_options, dl_output_options, NULL};
static const char *const examples[] = {
    "dlmodel init --device a100_sxm4_80 --devices-per-node 4 --nodes 16 --network '4x200Gb/s "
    "infiniband'",
    "dlmodel init --device h100 --nodes 8 --partition gpu --site-output site.json -o cluster.json",
    NULL};

struct job {
    struct dl_context *context;
    struct answers a;
    struct dl_machine_facts facts;
    struct dl_node_class of;
    const char *output;
};

/* ---- output of tools ---- */

enum { MOST_BYTES = 64 << 20 };

static enum dl_code read_files(struct job *job, const struct dl_options *options,
                               struct dl_err *err) {
    for (int i = 0; i < options->positional_count; i++) {
        char *text;
        size_t length;
        const char *path = options->positional[i];
        DL_TRY(dl_file_read(path, MOST_BYTES, job->context->arena, &text, &length, err));
        if (!dl_machine_facts_add(text, job->context->arena, &job->facts))
            return dl_fail_at(err, path, 1, 1, NULL,
                              "expected the output of scontrol show node, nvidia-smi topo -m, "
                              "nvidia-smi -L or ibstat");
    }
    return DL_OK;
}

static void run_tools(struct job *job) {
    static const char *const commands[] = {"scontrol show node 2>/dev/null",
                                           "nvidia-smi topo -m 2>/dev/null",
                                           "nvidia-smi -L 2>/dev/null", "ibstat 2>/dev/null"};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct dl_text t = {.arena = job->context->arena};
        char piece[4096];
        FILE *tool = popen(commands[i], "r"); /* NOLINT(cert-env33-c): fixed commands */
        if (tool == NULL) continue;
        size_t total = 0;
        for (size_t n; (n = fread(piece, 1, sizeof piece, tool)) > 0; total += n)
            if (total < MOST_BYTES) dl_text_add_bytes(&t, piece, n);
        pclose(tool);
        if (total > 0)
            (void)dl_machine_facts_add(dl_text_string(&t), job->context->arena, &job->facts);
    }
}

/* ---- questions ---- */

/* An answer, or `usual` for an empty line. */
static const char *ask(struct job *job, const char *question, const char *usual) {
    char line[1024];
    fprintf(stderr, "%s%s%s%s: ", question, usual[0] != 0 ? " [" : "", usual,
            usual[0] != 0 ? "]" : "");
    fflush(stderr);
    if (fgets(line, sizeof line, stdin) == NULL) line[0] = 0;
    size_t length = strcspn(line, "\n");
    while (length > 0 && isspace((unsigned char)line[length - 1])) length--;
    return length == 0 ? usual : dl_arena_strndup(job->context->arena, line, length);
}

static enum dl_code ask_count(struct job *job, const char *question, int64_t usual, int64_t *out,
                              struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    const char *shown = dl_arena_printf(arena, "%lld", (long long)(usual > 0 ? usual : 1));
    double value;
    const char *text = ask(job, question, shown);
    struct dl_err inner = {.code = DL_OK};
    if (dl_units_parse(text, DL_UNIT_COUNT, &value, &inner) != DL_OK || !(value >= 1) ||
        value > 1e7 || value != (double)(int64_t)value)
        return dl_fail(err, DL_ERR_USAGE, "%s: expected a whole number, got \"%.60s\"", question,
                       text);
    *out = (int64_t)value;
    return DL_OK;
}

static const char *found_network(const struct job *job) {
    const struct dl_machine_facts *f = &job->facts;
    if (f->adapters == 0) return NULL;
    return dl_arena_printf(job->context->arena, "%lldx%.0fGb/s %s", (long long)f->adapters,
                           f->adapter_bytes_per_s * 8e-9,
                           f->adapter_ethernet ? "ethernet" : "infiniband");
}

static const char *or_empty(const char *text) { return text != NULL ? text : ""; }

static enum dl_code ask_all(struct job *job, struct dl_err *err) {
    struct answers *a = &job->a;
    const struct dl_machine_facts *f = &job->facts;
    if (a->name == NULL) a->name = ask(job, "1/6 Name of the cluster", "cluster");
    if (a->device == NULL)
        a->device = ask(job, "2/6 GPU, as in 'dlmodel list devices' (h100, a100_sxm4_80, ...)",
                        or_empty(f->device));
    if (a->devices_per_node == 0)
        DL_TRY(ask_count(job, "3/6 GPUs of a node",
                         f->devices_per_node > 0 ? f->devices_per_node : 8, &a->devices_per_node,
                         err));
    if (a->nodes == 0) DL_TRY(ask_count(job, "4/6 Nodes", f->nodes, &a->nodes, err));
    if (a->network == NULL)
        a->network = ask(job,
                         "5/6 Network of a node: adapters x rate and kind, as 8x400Gb/s infiniband "
                         "(empty: that of the usual machine of this GPU)",
                         or_empty(found_network(job)));
    if (a->partition == NULL)
        a->partition =
            ask(job, "6/6 Slurm partition (empty: no site file)", or_empty(f->partition));
    return DL_OK;
}

/* ---- device ---- */

/* Characters of the text that are letters or digits, in lower case. */
static char *plain(struct dl_arena *arena, const char *text) {
    char *out = dl_arena_strdup(arena, text), *to = out;
    for (const char *c = text; *c != 0; c++)
        if (isalnum((unsigned char)*c)) *to++ = (char)tolower((unsigned char)*c);
    *to = 0;
    return out;
}

/* Length of the parts of a device's name if the text contains all of them; else 0. */
static size_t parts_in(const char *name, const char *text, struct dl_arena *arena) {
    size_t total = 0;
    for (const char *at = name; *at != 0;) {
        const size_t length = strcspn(at, "_");
        if (strstr(text, dl_arena_strndup(arena, at, length)) == NULL) return 0;
        total += length;
        at += length + (at[length] != 0 ? 1 : 0);
    }
    return total;
}

/* The usual node of the device named by the user or by a tool. */
static enum dl_code find_device(struct job *job, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    const struct dl_data *data = &job->context->data;
    const char **names, *best = NULL, *text = job->a.device, *lower = plain(arena, text);
    size_t most = 0;
    struct dl_err first = {.code = DL_OK}, other;
    if (dl_node_class_find(data, dl_arena_printf(arena, "1x1x%s", text), arena, &job->of, &first) ==
        DL_OK)
        return DL_OK;
    dl_data_names(data, DL_DATA_DEVICE, arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        const size_t length = parts_in(names[i], lower, arena);
        if (length > most) most = length, best = names[i];
    }
    if (best != NULL && dl_node_class_find(data, dl_arena_printf(arena, "1x1x%s", best), arena,
                                           &job->of, &other) == DL_OK)
        return DL_OK;
    for (const char *at = text; *at != 0;) { /* "NVIDIA H100 80GB HBM3": its words */
        at += strspn(at, " -");
        const size_t length = strcspn(at, " -");
        const char *word = dl_arena_printf(arena, "1x1x%.*s", (int)length, at);
        if (length > 2 && dl_node_class_find(data, word, arena, &job->of, &other) == DL_OK)
            return DL_OK;
        at += length;
    }
    return dl_fail(err, DL_ERR_USAGE,
                   "--device: %s; for another device fill in 'dlmodel schema system --template'",
                   first.message);
}

/* ---- network ---- */

static enum dl_code take_network(const struct job *job, struct dl_link *link, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    const char *text = job->a.network;
    char *end;
    const long long count = strtoll(text, &end, 10);
    const bool counted = count > 0 && count <= 64 && *end == 'x';
    const char *rate = counted ? end + 1 : text, *kind = strchr(rate, ' ');
    const char *number = kind == NULL ? rate : dl_arena_strndup(arena, rate, (size_t)(kind - rate));
    struct dl_err inner = {.code = DL_OK};
    double bytes_per_s;
    kind = kind == NULL ? "" : kind + strspn(kind, " ");
    const bool roce = strcmp(kind, "roce") == 0, ethernet = roce || strcmp(kind, "ethernet") == 0;
    if (dl_units_parse(number, DL_UNIT_BYTE_PER_S, &bytes_per_s, &inner) != DL_OK ||
        !(bytes_per_s > 1e6) || (kind[0] != 0 && !ethernet && strcmp(kind, "infiniband") != 0))
        return dl_fail(err, DL_ERR_USAGE,
                       "--network: expected [Nx]RATE [infiniband|roce|ethernet], such as "
                       "'8x400Gb/s infiniband', got \"%.60s\"",
                       text);
    if (kind[0] != 0) {
        link->kind = ethernet ? "ethernet" : "infiniband";
        link->rdma = !ethernet || roce;
        link->gpudirect = link->gpudirect && link->rdma;
    }
    if (counted) link->adapters_per_node = count;
    /* payload over rate: InfiniBand NDR and HDR attain about this (nccl-tests) */
    link->bandwidth_bytes_per_s = 0.95 * bytes_per_s;
    link->piece_count = 0;
    return DL_OK;
}

/* ---- files ---- */

static struct dl_map_entry entry(const char *key, const char *source) {
    return (struct dl_map_entry){.key = key, .text = source, .number = (double)NAN};
}

/* Host: cores and memory from scontrol, the rest from the usual machine. */
static void take_host(const struct job *job, struct dl_host *host) {
    const struct dl_machine_facts *f = &job->facts;
    struct dl_map_entry *own = dl_arena_alloc(job->context->arena, 3, sizeof *own);
    host->source = "borrowed";
    host->sources = own, host->source_count = 0;
    if (f->sockets > 0) {
        host->sockets = f->sockets;
        own[host->source_count++] = entry("sockets", f->nodes_from);
    }
    if (f->cores > 0) {
        host->cores = f->cores;
        own[host->source_count++] = entry("cores", f->nodes_from);
    }
    if (f->memory_bytes > 0) {
        host->memory_bytes = f->memory_bytes;
        own[host->source_count++] = entry("memory_bytes", f->nodes_from);
    }
}

/* The links of the usual node, restricted to the devices of this one. */
static void keep_devices(struct dl_link *link, int64_t devices, int64_t usual) {
    int kept = 0;
    if (devices == usual) return;
    for (int i = 0; i < link->edge_count && devices < usual; i++)
        if (link->edges[i].from < devices && link->edges[i].to < devices)
            link->edges[kept++] = link->edges[i];
    link->edge_count = kept;
    if (link->peer_group == DL_ABSENT || (link->peer_group < devices && devices < usual)) return;
    link->peer_group = DL_ABSENT;
    link->cross_bandwidth_bytes_per_s = (double)NAN;
}

static enum dl_code take_links(const struct job *job, struct dl_system *s, struct dl_err *err) {
    struct dl_map_entry *own = dl_arena_alloc(job->context->arena, 4, sizeof *own);
    const char *from = job->facts.adapters > 0 ? "ibstat" : "answer";
    s->has_intra = s->has_intra && s->devices_per_node > 1;
    s->has_inter = s->has_inter && s->nodes > 1;
    s->has_links = s->has_intra || s->has_inter;
    s->intra.source = s->inter.source = "borrowed";
    s->intra.source_count = s->inter.source_count = 0;
    if (!s->has_inter) return DL_OK;
    s->inter.sources = own;
    if (job->a.network != NULL && job->a.network[0] != 0) {
        DL_TRY(take_network(job, &s->inter, err));
        own[s->inter.source_count++] = entry("adapters_per_node", from);
        own[s->inter.source_count++] = entry("bandwidth_bytes_per_s", "assumed");
        s->inter.comment = dl_arena_printf(
            job->context->arena, "Bandwidth: 95 %% of the rate in \"%s\".", job->a.network);
    }
    if (job->facts.distance != NULL) {
        s->inter.distance = job->facts.distance;
        own[s->inter.source_count++] = entry("distance", "nvidia-smi topo -m");
    }
    return DL_OK;
}

static enum dl_code system_text(struct job *job, const char **out, struct dl_err *err) {
    struct dl_arena *arena = job->context->arena;
    struct dl_json *doc = NULL;
    struct dl_system s;
    const char *text;
    job->of.nodes = job->a.nodes;
    job->of.devices_per_node = job->a.devices_per_node;
    DL_TRY(dl_node_class_text(&job->context->data, job->a.name, &job->of, arena, &text, err));
    DL_TRY(dl_json_parse(job->a.name, text, strlen(text), arena, &doc, err));
    DL_TRY(dl_json_load(doc, &dl_system_schema, arena, &s, err));
    keep_devices(&s.intra, job->a.devices_per_node, s.devices_per_node);
    s.devices_per_node = job->a.devices_per_node;
    s.summary = dl_arena_printf(arena, "%lld nodes with %lld %s", (long long)s.nodes,
                                (long long)s.devices_per_node, job->of.device);
    s.source = "borrowed";
    struct dl_map_entry *own = dl_arena_alloc(arena, 2, sizeof *own);
    own[0] = entry("nodes", job->facts.nodes > 0 ? job->facts.nodes_from : "answer");
    own[1] = entry("devices_per_node", own[0].text);
    s.sources = own, s.source_count = 2;
    s.collective_count = 0; /* measured on other links */
    take_host(job, &s.host);
    DL_TRY(take_links(job, &s, err));
    if (s.has_fabric) s.fabric.source = "borrowed", s.fabric.source_count = 0;
    if (s.has_storage) s.storage.source = "borrowed", s.storage.source_count = 0;
    s.has_fabric = s.has_fabric && s.nodes > 1;
    s.comment = dl_arena_printf(
        arena,
        "Numbers with the source \"borrowed\" are those of %s%s%s, usual for %s. Replace them by "
        "your own; dlmodel calibrate measures a node.",
        job->of.node, strcmp(job->of.network, job->of.node) != 0 ? " and " : "",
        strcmp(job->of.network, job->of.node) != 0 ? job->of.network : "", job->of.device);
    DL_TRY(dl_system_check(&s, doc, err));
    *out = dl_json_text(&dl_system_schema, &s, arena);
    return DL_OK;
}

static const char *site_text(const struct job *job) {
    const struct answers *a = &job->a;
    struct dl_json_writer w;
    dl_jw_init(&w, job->context->arena, false);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "format", "dlmodel-site");
    dl_jw_integer(&w, "version", 1);
    dl_jw_string(&w, "name", a->name);
    dl_jw_string(&w, "summary", dl_arena_printf(job->context->arena, "jobs on %s", a->name));
    dl_jw_string(&w, "system", job->output != NULL ? job->output : a->name);
    if (a->partition != NULL && a->partition[0] != 0) dl_jw_string(&w, "partition", a->partition);
    dl_jw_string(&w, "gres", job->facts.gres != NULL ? job->facts.gres : "gpu");
    dl_jw_string(&w, "device", "gpu");
    dl_jw_integer(&w, "devices_per_node", a->devices_per_node);
    if (job->facts.cores > 0) dl_jw_integer(&w, "cores_per_node", job->facts.cores);
    dl_jw_integer(&w, "max_nodes", a->nodes);
    return dl_jw_text(&w);
}

/* A path with a '/', so that it is one and no name. */
static const char *as_path(struct dl_arena *arena, const char *path) {
    return strchr(path, '/') != NULL ? path : dl_arena_printf(arena, "./%s", path);
}

static enum dl_code write_new(const char *path, const char *text, bool replace,
                              struct dl_err *err) {
    if (!replace && access(path, F_OK) == 0)
        return dl_fail(err, DL_ERR_USAGE, "%s exists; give another --name, or -o FILE", path);
    return dl_file_write(path, text, strlen(text), err);
}

static enum dl_code write_all(struct job *job, const struct dl_options *options, bool asked,
                              struct dl_err *err) {
    struct dl_context *context = job->context;
    struct dl_arena *arena = context->arena;
    struct answers *a = &job->a;
    const char *given = dl_option_text(options, "output"), *text;
    const bool site_given = a->site_output != NULL;
    if (given == NULL && asked) given = dl_arena_printf(arena, "%s.json", a->name);
    if (!site_given && asked && a->partition != NULL && a->partition[0] != 0)
        a->site_output = dl_arena_printf(arena, "%s-site.json", a->name);
    job->output = given != NULL ? as_path(arena, given) : NULL;
    DL_TRY(system_text(job, &text, err));
    if (job->output == NULL)
        DL_TRY(context->output(options, text, err));
    else
        DL_TRY(write_new(job->output, text, dl_option_given(options, "output"), err));
    if (a->site_output != NULL) DL_TRY(write_new(a->site_output, site_text(job), site_given, err));
    if (job->facts.inside != NULL && strcmp(job->facts.inside, "NVLink") != 0)
        context->note(context, "GPUs reach each other over PCIe (%s); check links.intra",
                      job->facts.inside);
    if (job->output != NULL)
        context->note(context, "wrote %s; next: dlmodel predict -s %s -f pytorch-ddp -n %lld",
                      job->output, job->output, (long long)a->nodes);
    if (a->site_output != NULL)
        context->note(context,
                      "wrote %s; next: dlmodel slurm submit --site %s -f pytorch-ddp --dry-run",
                      a->site_output, as_path(arena, a->site_output));
    return DL_OK;
}

static enum dl_code run(struct dl_context *context, const struct dl_options *options,
                        struct dl_err *err) {
    struct job *job = dl_arena_alloc(context->arena, 1, sizeof *job);
    struct answers *a = &job->a;
    job->context = context;
    DL_TRY(dl_options_bind(options, init_options, a, err));
    DL_TRY(read_files(job, options, err));
    const bool asks = a->ask || (isatty(STDIN_FILENO) && isatty(STDERR_FILENO));
    if (a->detect || (asks && !a->ask)) run_tools(job);
    if (asks) DL_TRY(ask_all(job, err));
    if (a->name == NULL) a->name = "cluster";
    if (a->device == NULL) a->device = job->facts.device;
    if (a->device == NULL || a->device[0] == 0)
        return dl_fail(err, DL_ERR_USAGE,
                       "no GPU is known: give --device NAME, the output of nvidia-smi -L, or run "
                       "init on a terminal");
    if (strpbrk(a->name, "/\\\"\n") != NULL || a->name[0] == 0)
        return dl_fail(err, DL_ERR_USAGE, "--name: expected a name without '/' or quotes");
    DL_TRY(find_device(job, err));
    if (a->nodes == 0) a->nodes = job->facts.nodes > 0 ? job->facts.nodes : 1;
    if (a->devices_per_node == 0) a->devices_per_node = job->facts.devices_per_node;
    if (a->devices_per_node == 0) {
        const struct dl_system *usual;
        DL_TRY(dl_data_system_alone(&context->data, job->of.node, context->arena, &usual, err));
        a->devices_per_node = usual->devices_per_node;
    }
    if (a->network == NULL) a->network = found_network(job);
    if (a->partition == NULL) a->partition = job->facts.partition;
    return write_all(job, options, asks, err);
}

const struct dl_command dl_cmd_init = {
    .name = "init",
    .summary = "describe your cluster: a system file, and a site file for Slurm",
    .usage = "[FILE...] [options]",
    .purpose =
        "On a terminal, asks six questions; in scripts, options answer them. FILEs hold the output "
        "of 'scontrol show node', 'nvidia-smi topo -m', 'nvidia-smi -L' or 'ibstat', which fill in "
        "what they say. All other numbers are borrowed from the usual machine of the GPU and "
        "marked so in the file. Prints the system file, or writes NAME.json (and NAME-site.json) "
        "after questions.",
    .examples = examples,
    .options = tables,
    .instead = "To measure a node instead use calibrate; for a quick answer without a file use "
               "predict -s 16x8xh100.",
    .run = run,
};
