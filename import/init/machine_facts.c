/* machine_facts.c - see the header. */
#include "import/init/machine_facts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GROUPS = 64, MAX_WORDS = 512 };

/* The value after "key=" between two texts, to the next space; NULL: there is none. */
static const char *value_of(const char *at, const char *end, const char *key,
                            struct dl_arena *arena) {
    const size_t length = strlen(key);
    for (; (at = strstr(at, key)) != NULL && at < end; at += length) {
        if (!isspace((unsigned char)at[-1]) || at[length] != '=') continue;
        return dl_arena_strndup(arena, at + length + 1, strcspn(at + length + 1, " \t\r\n"));
    }
    return NULL;
}

static int64_t whole(const char *text) {
    const long long value = text == NULL ? 0 : strtoll(text, NULL, 10);
    return value > 0 && value < 1000000000 ? value : 0;
}

/* Identical nodes. */
struct group {
    const char *gres, *partition;
    int64_t devices, sockets, cores, memory_mib, count;
};

/* "gpu:volta:4(S:0-1),craynetwork:4": type and number of the GPUs. */
static void read_gres(const char *text, struct dl_arena *arena, struct group *g) {
    const char *gpu = text == NULL ? NULL : strstr(text, "gpu:");
    if (gpu == NULL || (gpu != text && gpu[-1] != ',')) return;
    const size_t length = strcspn(gpu, ",(");
    const char *one = dl_arena_strndup(arena, gpu, length), *last = strrchr(one, ':');
    g->devices = whole(last + 1);
    g->gres = dl_arena_strndup(arena, one, (size_t)(last - one));
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool alike(const struct group *a, const struct group *b) {
    return same_text(a->gres, b->gres) && a->devices == b->devices && a->cores == b->cores &&
           a->memory_mib == b->memory_mib;
}

/* One record of scontrol show node. */
static struct group read_node(const char *at, const char *end, struct dl_arena *arena) {
    struct group g = {.count = 1};
    read_gres(value_of(at, end, "Gres", arena), arena, &g);
    g.sockets = whole(value_of(at, end, "Sockets", arena));
    g.cores = g.sockets * whole(value_of(at, end, "CoresPerSocket", arena));
    g.memory_mib = whole(value_of(at, end, "RealMemory", arena));
    const char *partitions = value_of(at, end, "Partitions", arena);
    if (partitions != NULL)
        g.partition = dl_arena_strndup(arena, partitions, strcspn(partitions, ","));
    return g;
}

/* The most frequent kind of node with GPUs, else of any node. */
static bool read_scontrol(const char *text, struct dl_arena *arena, struct dl_machine_facts *f) {
    struct group groups[MAX_GROUPS];
    int count = 0;
    const struct group *best = NULL;
    for (const char *at = strstr(text, "NodeName="), *next; at != NULL; at = next) {
        next = strstr(at + 1, "NodeName=");
        const struct group g = read_node(at + 1, next != NULL ? next : at + strlen(at), arena);
        int i = 0;
        while (i < count && !alike(&groups[i], &g)) i++;
        if (i < count)
            groups[i].count++;
        else if (count < MAX_GROUPS)
            groups[count++] = g;
    }
    for (int i = 0; i < count; i++) {
        const bool gpus = groups[i].devices > 0, had = best != NULL && best->devices > 0;
        if (best == NULL || (gpus && !had) || (gpus == had && groups[i].count > best->count))
            best = &groups[i];
    }
    if (best == NULL) return false;
    f->nodes_from = "scontrol show node";
    f->nodes = best->count;
    f->devices_per_node = best->devices;
    f->sockets = best->sockets, f->cores = best->cores;
    f->memory_bytes = (double)best->memory_mib * 1048576;
    f->partition = best->partition, f->gres = best->gres;
    const char *type = best->gres != NULL ? strchr(best->gres, ':') : NULL;
    if (f->device == NULL && type != NULL)
        f->device = type + 1, f->device_from = "scontrol show node";
    return true;
}

/* Words of a line without terminal escapes; their number. */
static int words_of(const char *line, const char *end, struct dl_arena *arena,
                    const char *words[MAX_WORDS]) {
    char *text = dl_arena_strndup(arena, line, (size_t)(end - line));
    int count = 0;
    for (char *c = text; *c != 0; c++) {
        if (*c != '\033') continue;
        const size_t length = strcspn(c, "mABCDHJK");
        memset(c, ' ', c[length] != 0 ? length + 1 : length);
    }
    for (char *at = text; count < MAX_WORDS;) {
        at += strspn(at, " \t\r");
        if (*at == 0) break;
        const size_t length = strcspn(at, " \t\r");
        words[count++] = dl_arena_strndup(arena, at, length);
        at += length;
    }
    return count;
}

static bool numbered(const char *word, const char *stem) {
    const size_t length = strlen(stem);
    return strncmp(word, stem, length) == 0 && isdigit((unsigned char)word[length]);
}

/* PIX is nearest; -1: not a level of the PCIe tree. */
static int rank_of(const char *word) {
    static const char *const ranks[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    for (int i = 0; i < 5; i++)
        if (strcmp(word, ranks[i]) == 0) return i;
    return -1;
}

/* The first GPU's row of nvidia-smi topo -m: its links to GPUs and to adapters. */
static void read_topo_row(const char *const *header, int columns, const char *const *row, int count,
                          struct dl_machine_facts *f) {
    int widest = -1, nearest = 5;
    const char *inside = NULL;
    for (int i = 0; i < columns && i + 1 < count; i++) {
        const char *cell = row[i + 1];
        const int rank = rank_of(cell);
        const bool adapter = numbered(header[i], "NIC") || strncmp(header[i], "mlx", 3) == 0;
        if (numbered(header[i], "GPU")) {
            if (numbered(cell, "NV")) inside = "NVLink";
            if (rank > widest) widest = rank;
        } else if (adapter && rank >= 0 && rank < nearest) {
            nearest = rank;
            f->distance = cell;
        }
    }
    static const char *const ranks[] = {"PIX", "PXB", "PHB", "NODE", "SYS"};
    f->inside = inside != NULL ? inside : widest >= 0 ? ranks[widest] : NULL;
}

static bool read_topo(const char *text, struct dl_arena *arena, struct dl_machine_facts *f) {
    const char *header[MAX_WORDS], *row[MAX_WORDS];
    int columns = 0, gpus = 0;
    for (const char *at = text; *at != 0;) {
        const char *end = at + strcspn(at, "\n");
        const char **words = columns == 0 ? header : row;
        const int count = words_of(at, end, arena, words);
        if (columns == 0 && count > 0 && strcmp(header[0], "GPU0") == 0 &&
            (count == 1 || rank_of(header[1]) < 0) && strchr(header[count - 1], 'X') == NULL)
            columns = count;
        else if (columns > 0 && count > 1 && numbered(row[0], "GPU") && gpus++ == 0)
            read_topo_row(header, columns, row, count, f);
        at = *end != 0 ? end + 1 : end;
    }
    if (gpus == 0) return false;
    if (f->devices_per_node == 0) f->devices_per_node = gpus;
    return true;
}

/* "GPU 0: NAME (UUID: ...)" */
static bool read_list(const char *text, struct dl_arena *arena, struct dl_machine_facts *f) {
    int64_t count = 0;
    for (const char *at = text; (at = strstr(at, "(UUID: GPU-")) != NULL; at++) count++;
    const char *name = strstr(text, "GPU 0: ");
    if (count == 0 || name == NULL) return false;
    const char *end = strstr(name, " (UUID");
    if (end == NULL) return false;
    f->device = dl_arena_strndup(arena, name + 7, (size_t)(end - name - 7));
    f->device_from = "nvidia-smi -L";
    if (f->devices_per_node == 0) f->devices_per_node = count;
    return true;
}

/* The text after a key of ibstat within a port's lines; "" where it has none. */
static const char *port_value(const char *at, const char *end, const char *key) {
    const char *found = strstr(at, key);
    return found == NULL || found >= end ? "" : found + strlen(key);
}

static bool read_ibstat(const char *text, struct dl_machine_facts *f) {
    double best = 0;
    const char *at = strstr(text, "CA '");
    if (at == NULL || strstr(text, "Link layer:") == NULL) return false;
    f->adapters = 0;
    for (const char *next; (at = strstr(at, "Port ")) != NULL; at = next) {
        next = strstr(at + 5, "Port ");
        while (next != NULL && !isdigit((unsigned char)next[5])) next = strstr(next + 5, "Port ");
        const char *end = next != NULL ? next : at + strlen(at);
        const double rate = strtod(port_value(at, end, "Rate: "), NULL) * 1e9 / 8;
        if (strncmp(port_value(at, end, "State: "), "Active", 6) == 0 && rate >= best && rate > 0) {
            f->adapters = rate > best ? 1 : f->adapters + 1;
            best = rate;
            f->adapter_ethernet = strncmp(port_value(at, end, "Link layer: "), "Ethernet", 8) == 0;
        }
        if (next == NULL) break;
    }
    f->adapter_bytes_per_s = best;
    return true;
}

bool dl_machine_facts_add(const char *text, struct dl_arena *arena,
                          struct dl_machine_facts *facts) {
    if (strncmp(text, "NodeName=", 9) == 0 || strstr(text, "\nNodeName=") != NULL)
        return read_scontrol(text, arena, facts);
    return read_topo(text, arena, facts) || read_list(text, arena, facts) ||
           read_ibstat(text, facts);
}
