/* coll_match.c - see coll_match.h. The table below is the whole knowledge: words of a row -> a
 * system file. */
#include "model/collective/coll_match.h"

#include <math.h>
#include <string.h>

/* All given parts must occur in the row. NULL system: known not to be described, with the reason.
 */
struct rule {
    const char *library, *words, *network, *file, *mpi, *why;
    bool one_process, device_buffers;
    const char *algorithm;    /* that the row's library runs; NULL: its choice */
    const char *nccl_version; /* of the row's time, where the row gives none; NULL: the system's */
};
static const char DEEPBENCH[] = "deepbench";
static const struct rule rules[] = {
    /* -g 8 */
    {"NCCL", "hybrid cube-mesh", "NVLink", "dgx1-v100", NULL, NULL, true, false, NULL, NULL},
    {"NCCL", "OCI BM.GPU3.8", "NVLink", "dgx1-v100", NULL, NULL, false, false, NULL, NULL},
    /* its container has torch 2.0.1, hence NCCL 2.14.3 (key "vtrain") */
    {"NCCL", "v100 single node", "NVLink", "dgx1-v100", NULL, NULL, false, false, NULL, "2.14.3"},
    {"NCCL", "DGX-1 cluster (4 EDR", "InfiniBand", "dgx1-v100", NULL, NULL, false, false, NULL,
     NULL},
    {"NCCL", "4 servers x 8 V100 (2 NVLinks), one EDR", "InfiniBand", "v100-8x-edr", NULL, NULL,
     false, false, NULL, NULL},
    {"NCCL", "2 nodes x 4 V100, 2x EDR", "InfiniBand", "abci-v100", NULL, NULL, false, false, NULL,
     NULL},
    {"NCCL", "p3dn", "", "aws-p3dn-24xlarge", NULL, NULL, false, false, NULL, NULL},
    {"NCCL", "4 machines x 8 V100-32G", "TCP", "v100-8x-100gbe", NULL, NULL, false, false, NULL,
     NULL},
    {"NCCL", "GCP", "TCP", "gcp-v100", NULL, NULL, false, false, NULL, NULL},
    /* runs of 2023 and later: Open MPI 4.1 or 5 */
    /* "host" and "device" rows of this one agree to a few percent at 26 us a step, in the node too:
       both staged */
    {"OSU", "ND40rs_v2, CycleCloud", "InfiniBand EDR", "v100-8x-edr", "hpcx-2.18", NULL, false,
     true, NULL, NULL},
    {"OSU", "ND40rs_v2", "InfiniBand EDR", "v100-8x-edr", "hpcx", NULL, false, false, NULL,
     NULL}, /* Azure's images carry HPC-X (mem) */
    {"OSU", "p3dn", "", "aws-p3dn-24xlarge", "openmpi-5.0", NULL, false, false, NULL, NULL},
    /* runs with and without the flag for device buffers cost the same */
    {"OSU", "Google", "TCP", "gcp-v100", "openmpi-5.0", NULL, false, false, NULL, NULL},
    {"MLSL", "7250", "OPA", "stampede2-knl", NULL, NULL, false, false, NULL, NULL},
    /* DeepBench: one server for each of its devices, found by the table deepbench below */
    {"Baidu", "Motherboard", "", DEEPBENCH, NULL, NULL, false, true, "ring", NULL},
    {"OSU", "Motherboard", "", DEEPBENCH, NULL, NULL, false, true, NULL, NULL},
    {"NCCL", "Motherboard", "", DEEPBENCH, NULL, NULL, false, false, NULL, NULL}};

/* The sheets of DeepBench tell the device in a column of its own. */
static const struct {
    const char *device, *file;
} deepbench[] = {{"1080Ti", "deepbench-1080ti"},
                 {"M40", "deepbench-m40"},
                 {"P100", "deepbench-p100"},
                 {"TitanX", "deepbench-titanx"},
                 {"TitanX_Pascal", "deepbench-titanx-pascal"}};

static bool has(const char *text, const char *part) {
    return part[0] == '\0' || (text != NULL && strstr(text, part) != NULL);
}

double dl_collective_bus_factor(enum dl_collective_op op, double ranks) {
    switch (op) {
    case DL_COLL_ALL_REDUCE: return 2.0 * (ranks - 1.0) / ranks;
    case DL_COLL_ALL_GATHER:
    case DL_COLL_REDUCE_SCATTER:
    case DL_COLL_ALL_TO_ALL: return (ranks - 1.0) / ranks;
    default: return 1.0;
    }
}

static int library_of(const char *name) {
    static const struct {
        const char *part;
        enum dl_library library;
    } names[] = {{"MLSL", DL_LIB_MLSL}, {"NCCL", DL_LIB_NCCL}, {"nccl", DL_LIB_NCCL},
                 {"OSU", DL_LIB_MPI},   {"MPI", DL_LIB_MPI},   {"Baidu", DL_LIB_MPI},
                 {"mlsl", DL_LIB_MLSL}, {"Gloo", DL_LIB_GLOO}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (has(name, names[i].part)) return (int)names[i].library;
    return name != NULL ? dl_library_find(name) : -1;
}

struct dl_coll_match dl_coll_match(const struct dl_coll_row *row) {
    struct dl_coll_match match = {.measured_s = NAN};
    int library = library_of(row->library),
        op = row->collective != NULL ? dl_collective_op_find(row->collective) : -1;
    match.why = "no system file matches this description";
    if (library < 0 || op < 0) {
        match.why = library < 0 ? "library not known" : "collective not known";
        return match;
    }
    if (!(row->nodes >= 1.0) || !(row->ranks >= row->nodes) ||
        fmod(row->ranks, row->nodes) != 0.0) {
        match.why = "nodes and ranks are not given";
        return match;
    }
    double bytes = row->size_bytes, measured_s = row->time_s;
    enum dl_collective_op operation = (enum dl_collective_op)op;
    if (isnan(bytes) && isnan(measured_s) && row->bus_bytes_per_s > 0.0) {
        bytes = 1073741824.0;
        measured_s = bytes * dl_collective_bus_factor(operation, row->ranks) / row->bus_bytes_per_s;
    }
    if (!(bytes >= 0.0) || !(measured_s > 0.0)) {
        match.why = "no size or time";
        return match;
    }
    match.request =
        (struct dl_collective_request){.op = operation,
                                       .library = (enum dl_library)library,
                                       .bytes = bytes,
                                       .nodes = (int64_t)row->nodes,
                                       .ranks_per_node = (int64_t)(row->ranks / row->nodes),
                                       .flows_per_adapter = 1.0};
    match.measured_s = measured_s;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct rule *rule = &rules[i];
        if (!has(row->library, rule->library) || !has(row->system, rule->words) ||
            !has(row->network, rule->network))
            continue;
        match.system = rule->file, match.mpi = rule->mpi, match.why = rule->why;
        if (rule->file == DEEPBENCH) {
            match.system = NULL, match.why = "no system file of this server";
            for (size_t d = 0; d < sizeof deepbench / sizeof deepbench[0] && row->device != NULL;
                 d++)
                if (strcmp(row->device, deepbench[d].device) == 0) match.system = deepbench[d].file;
        }
        match.request.algorithm = rule->algorithm, match.nccl_version = rule->nccl_version;
        match.request.device_buffers = rule->device_buffers;
        match.launches = rule->one_process ? (int)match.request.ranks_per_node : 0;
        break;
    }
    /* "2.4.7ms0"; words such as "NGC TF 24.06" are not versions */
    const char *version = row->lib_version;
    if (match.system != NULL && version != NULL && version[0] == '2' && version[1] == '.')
        match.nccl_version = version;
    return match;
}

enum dl_code dl_coll_row_read(const struct dl_csv *csv, int row, struct dl_coll_row *out,
                              struct dl_err *err) {
    struct dl_coll_row read = {0};
    struct {
        const char *column;
        const char **text;
    } texts[] = {{"library", &read.library},
                 {"lib_version", &read.lib_version},
                 {"collective", &read.collective},
                 {"device", &read.device},
                 {"system", &read.system},
                 {"network", &read.network},
                 {"notes", &read.notes}};
    struct {
        const char *column;
        double scale, *number;
    } numbers[] = {{"nodes", 1.0, &read.nodes},
                   {"ranks", 1.0, &read.ranks},
                   {"size_bytes", 1.0, &read.size_bytes},
                   {"time_us", 1e-6, &read.time_s},
                   {"busbw_GBs", 1e9, &read.bus_bytes_per_s}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int column = dl_csv_column(csv, texts[i].column);
        if (column < 0)
            return dl_fail_at(err, csv->name, 1, 1, texts[i].column, "expected this column");
        *texts[i].text = csv->rows[row][column];
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        int column = dl_csv_column(csv, numbers[i].column);
        if (column < 0)
            return dl_fail_at(err, csv->name, 1, 1, numbers[i].column, "expected this column");
        DL_TRY(dl_csv_number(csv, row, column, numbers[i].number, err));
        *numbers[i].number *= numbers[i].scale;
    }
    *out = read;
    return DL_OK;
}
