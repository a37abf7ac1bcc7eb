/* import_names.c - names of layers, from those of weights and nodes. */
#include <string.h>

#include "import/import_layers.h"

/* A scope that begins with its parent's name replaces it: "layer1/layer1.0" is "layer1.0". */
static void drop_parents(char *name) {
    for (char *at = name, *next; (next = strchr(at, '/')) != NULL;) {
        const size_t length = (size_t)(next - at);
        if (strncmp(at, next + 1, length) == 0 && next[1 + length] == '.')
            memmove(at, next + 1, strlen(next + 1) + 1);
        else
            at = next + 1;
    }
}

static char plain(char c) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    if (c == '/') return '.';
    return strchr(allowed, c) != NULL ? c : '_';
}

/* "/layer1/layer1.0/relu/Relu" -> "layer1.0.relu"; "features.0.weight" -> "features.0". */
static const char *clean_name(struct dl_arena *arena, const char *text) {
    char *name = dl_arena_strdup(arena, text + strspn(text, "/"));
    char *slash = strrchr(name, '/');
    if (slash != NULL) *slash = 0;
    drop_parents(name);
    for (char *at = name; *at != 0; at++) *at = plain(*at);
    static const char *const endings[] = {".weight", "_weight", ".W",     "_W", ".in_proj",
                                          ".kernel", ".gamma",  ".scale", NULL};
    for (int i = 0; endings[i] != NULL; i++) {
        const size_t length = strlen(name), end = strlen(endings[i]);
        if (length > end && strcmp(name + length - end, endings[i]) == 0) name[length - end] = 0;
    }
    if (strlen(name) > 120) name[120] = 0;
    return name;
}

static bool is_taken(struct dl_import_net *net, const char *name) {
    const int before = net->names.value_count;
    dl_onnx_value(&net->names, name);
    return net->names.value_count == before;
}

void dl_net_name(struct dl_import_net *net, struct dl_import_item *item, int weight) {
    const struct dl_onnx_node *n = &net->graph->nodes[net->node];
    const char *kind = item->layer.kind->name, *from = n->name;
    if (weight >= 0) { /* the name of a parameter contains the author's name of the layer */
        const struct dl_onnx_value *v = dl_net_value(net, dl_net_value(net, weight)->origin);
        if (v->initializer && strncmp(v->name, "onnx::", 6) != 0) from = v->name;
    }
    const char *base = clean_name(net->arena, from);
    const bool plain =
        base[0] != 0 && base[strspn(base, "0123456789")] != 0 &&
        !(strncmp(base, "in", 2) == 0 &&
          (strcmp(base, "input") == 0 || base[2 + strspn(base + 2, "0123456789")] == 0));
    const char *name = plain ? base : kind;
    for (int i = net->item_count; name != NULL && is_taken(net, name); i++) {
        name = dl_arena_printf(net->arena, "%s_%d", plain ? base : kind, i);
    }
    item->name = name;
}
