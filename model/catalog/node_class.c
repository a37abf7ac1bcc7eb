/* node_class.c - see the header. */
#include "model/catalog/node_class.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "model/catalog/data_internal.h"
#include "model/core/name_hint.h"

enum { MAX_COUNT = 10000000 };

/* "8x" at the start of a text; NULL: another start. */
static const char *count_of(const char *text, int64_t *out) {
    char *end;
    if (*text < '1' || *text > '9') return NULL;
    *out = strtoll(text, &end, 10);
    return (*end == 'x' || *end == 'X') && end[1] != '\0' && *out <= MAX_COUNT ? end + 1 : NULL;
}

/* The device in "8xDEVICE" or "4x8xDEVICE"; nodes 0: not given. NULL: another form. */
static const char *split(const char *name, int64_t *nodes, int64_t *devices) {
    int64_t first, second;
    const char *rest = count_of(name, &first);
    const char *last = rest != NULL ? count_of(rest, &second) : NULL;
    *nodes = last != NULL ? first : 0;
    *devices = last != NULL ? second : first;
    return last != NULL ? last : rest;
}

bool dl_node_class_is(const char *name) {
    int64_t nodes, devices = 0;
    return !dl_data_is_path(name) && split(name, &nodes, &devices) != NULL;
}

/* A row of the table. */
struct row {
    const char *device, *node_of, *network_of, *word, *source, *notes;
};

/* The row in the first data directory that has one, by the requested column; its device is NULL
 * where none has. */
static enum dl_code find_row(const struct dl_data *data, bool by_word, const char *text,
                             struct dl_arena *arena, struct row *out, struct dl_err *err) {
    static const char *const names[] = {"device", "node_of", "network_of",
                                        "word",   "source",  "notes"};
    *out = (struct row){.device = NULL};
    for (int d = 0; d < data->directory_count && out->device == NULL; d++) {
        const char *path = dl_arena_printf(arena, "%s/device_classes.csv", data->directories[d]);
        struct dl_csv csv;
        int at[6];
        if (!dl_data_exists(path)) continue;
        DL_TRY(dl_data_csv(data, path, arena, &csv, err));
        for (int i = 0; i < 6; i++) {
            at[i] = dl_csv_column(&csv, names[i]);
            if (at[i] < 0)
                return dl_fail_at(err, path, 1, 1, names[i], "the table needs this column");
        }
        for (int r = 0; r < csv.row_count && out->device == NULL; r++) {
            const char *const *cells = csv.rows[r];
            if (strcasecmp(cells[at[by_word ? 3 : 0]], text) != 0) continue;
            *out = (struct row){cells[at[0]], cells[at[1]], cells[at[2]],
                                cells[at[3]], cells[at[4]], cells[at[5]]};
        }
    }
    return DL_OK;
}

/* The device that people mean: its name in any case, the word of a row, or the start of one name
 * alone. */
static enum dl_code device_of(const struct dl_data *data, const char *word, struct dl_arena *arena,
                              const char **out, struct dl_err *err) {
    const char **names, *started = "";
    int count = 0;
    struct row row;
    dl_data_names(data, DL_DATA_DEVICE, arena, &names);
    for (int i = 0; names[i] != NULL; i++) {
        if (strcasecmp(names[i], word) == 0) {
            *out = names[i];
            return DL_OK;
        }
        if (strncasecmp(names[i], word, strlen(word)) != 0) continue;
        started = dl_arena_printf(arena, "%s%s%s", started, count > 0 ? ", " : "", names[i]);
        if (count++ == 0) *out = names[i];
    }
    DL_TRY(find_row(data, true, word, arena, &row, err));
    if (row.device != NULL) *out = row.device;
    if (row.device != NULL || count == 1) return DL_OK;
    if (count > 1)
        return dl_fail(err, DL_ERR_USAGE, "device \"%.60s\" may be %.200s: name one", word,
                       started);
    return dl_name_hint("device", "devices", word, names, arena, err);
}

enum dl_code dl_node_class_find(const struct dl_data *data, const char *name,
                                struct dl_arena *arena, struct dl_node_class *out,
                                struct dl_err *err) {
    const struct dl_system *usual;
    struct row row;
    const char *word = split(name, &out->nodes, &out->devices_per_node);
    DL_TRY(device_of(data, word, arena, &out->device, err));
    DL_TRY(find_row(data, false, out->device, arena, &row, err));
    if (row.device == NULL)
        return dl_fail(err, DL_ERR_USAGE,
                       "%.80s: no usual host and links are known for %s; describe the node in a "
                       "system file (dlmodel schema system)",
                       name, out->device);
    out->node = row.node_of;
    out->network = row.network_of[0] != '\0' ? row.network_of : row.node_of;
    out->source = row.source;
    out->remark = row.notes;
    DL_TRY(dl_data_system_alone(data, out->node, arena, &usual, err));
    const int64_t each = usual->devices_per_node, asked = out->devices_per_node;
    if (asked > each && (out->nodes > 0 || asked % each != 0))
        return dl_fail(err, DL_ERR_USAGE,
                       "%.80s: nodes with %s have %lld devices; expected at most as many, or a "
                       "multiple of them",
                       name, out->device, (long long)each);
    if (asked > each) out->devices_per_node = each;
    if (out->nodes == 0) out->nodes = asked / out->devices_per_node;
    return DL_OK;
}

enum dl_code dl_node_class_text(const struct dl_data *data, const char *name,
                                const struct dl_node_class *of, struct dl_arena *arena,
                                const char **text, struct dl_err *err) {
    const struct dl_system *node, *network;
    DL_TRY(dl_data_system_alone(data, of->node, arena, &node, err));
    DL_TRY(dl_data_system_alone(data, of->network, arena, &network, err));
    struct dl_system made = *node;
    made.name = name;
    made.summary = dl_node_class_words(of, arena);
    made.device_name = of->device;
    made.nodes = of->nodes;
    made.operation.price_per_node_hour = made.operation.node_mtbf_s =
        NAN; /* of that machine alone */
    made.operation.price_currency = made.operation.price_date = NULL;
    if (strcmp(of->device, node->device_name) != 0) made.collective_count = 0;
    made.inter = network->inter;
    made.has_inter = network->has_inter;
    if (strcmp(of->network, of->node) != 0) {
        made.fabric = network->fabric;
        made.has_fabric = network->has_fabric;
    }
    made.has_links = made.has_intra || made.has_inter;
    *text = dl_json_text(&dl_system_schema, &made, arena);
    return DL_OK;
}

const char *dl_node_class_words(const struct dl_node_class *of, struct dl_arena *arena) {
    const bool apart = strcmp(of->network, of->node) != 0;
    return dl_arena_printf(arena, "%lld node%s with %lld %s; host and links of %s%s%s (%s%s%s)",
                           (long long)of->nodes, of->nodes == 1 ? "" : "s",
                           (long long)of->devices_per_node, of->device, of->node,
                           apart ? ", network of " : "", apart ? of->network : "", of->source,
                           of->remark[0] != '\0' ? ": " : "", of->remark);
}

enum dl_code dl_node_class_lend(const struct dl_data *data, struct dl_arena *arena,
                                struct dl_system *system, struct dl_err *err) {
    const bool jitter = !dl_known(system->jitter_frac), host = !system->has_host,
               fabric = system->has_inter && !system->has_fabric;
    const struct dl_system *node, *network;
    struct row row;
    if (system->has_profile || system->device_name == NULL || (!jitter && !host && !fabric))
        return DL_OK;
    DL_TRY(find_row(data, false, system->device_name, arena, &row, err));
    if (row.device == NULL) return DL_OK;
    const char *of = row.network_of[0] != '\0' ? row.network_of : row.node_of, *words = "";
    DL_TRY(dl_data_system_alone(data, row.node_of, arena, &node, err));
    DL_TRY(dl_data_system_alone(data, of, arena, &network, err));
    if (jitter && dl_known(node->jitter_frac)) {
        system->jitter_frac = node->jitter_frac;
        words = dl_arena_printf(arena, ", jitter %.1f %%", 100 * node->jitter_frac);
    }
    if (host && node->has_host) {
        system->host = node->host, system->has_host = true;
        words = dl_arena_printf(arena, "%s, host", words);
    }
    if (fabric && network->has_fabric) {
        system->fabric = network->fabric, system->has_fabric = true;
        words = dl_arena_printf(arena, "%s, switches", words);
    }
    if (words[0] != '\0')
        system->borrowed = dl_arena_printf(
            arena, "its file does not say, so assumed as of %s, which is usual for %s: %s",
            row.node_of, system->device_name, words + 2);
    return DL_OK;
}
