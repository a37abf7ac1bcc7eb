/* import_stack.c - see the header. A body layer may read what the one before it puts out, and
 * nothing else from outside; what comes after the stack may read its last output alone. */
#include "import/import_stack.h"

#include <stdlib.h>
#include <string.h>

bool dl_import_in_stack(const struct dl_import_stack *stack, int item) {
    return stack->count > 0 && item >= stack->first &&
           item < stack->first + stack->count * stack->each;
}

/* ---- structure ---- */

/* One attention in each body layer, all equally far apart. */
static bool spacing(const struct dl_import_net *net, int *first, int *count, int *each) {
    int last = -1;
    *first = -1;
    *count = *each = 0;
    for (int i = 0; i < net->item_count; i++) {
        if (net->items[i].layer.kind != &dl_layer_attention) continue;
        if (*count == 0) *first = i;
        if (*count == 1) *each = i - last;
        if (*count > 1 && i - last != *each) return false;
        last = i;
        (*count)++;
    }
    return *count > 1;
}

/* Whether two items do the same to inputs at the same places relative to their body layers, which
 * begin at a_start and b_start. */
static bool alike(const struct dl_import_net *net, const struct dl_import_stack *s, int a,
                  int a_start, int b, int b_start) {
    const struct dl_layer *la = &net->items[a].layer, *lb = &net->items[b].layer;
    if (la->kind != lb->kind || la->input_count != lb->input_count || net->items[a].tied >= 0 ||
        net->items[b].tied >= 0)
        return false;
    for (int i = 0; i < la->input_count; i++) {
        if (la->inputs[i] - a_start != lb->inputs[i] - b_start) return false;
        if (la->inputs[i] < a_start - 1) return false; /* beyond what comes in */
    }
    const char *ta = dl_import_geometry_text(net, s, a), *tb = dl_import_geometry_text(net, s, b);
    return ta != NULL && tb != NULL && strcmp(ta, tb) == 0;
}

static bool is_stack(const struct dl_import_net *net, const struct dl_import_stack *s) {
    const int end = s->first + s->count * s->each;
    if (s->first < 0 || end > net->item_count) return false;
    for (int i = s->first; i < end; i++) {
        const int offset = (i - s->first) % s->each;
        if (!alike(net, s, s->first + offset, s->first, i, i - offset)) return false;
    }
    for (int i = end; i < net->item_count; i++) {
        const struct dl_layer *layer = &net->items[i].layer;
        for (int k = 0; k < layer->input_count; k++)
            if (layer->inputs[k] >= s->first && layer->inputs[k] < end - 1) return false;
    }
    return dl_net_shape(net, s->first - 1)->channels == dl_net_shape(net, end - 1)->channels;
}

/* ---- names ---- */

/* Length of what two dotted names have in common, up to and with a dot. */
static size_t common(const char *a, const char *b) {
    size_t length = 0;
    for (size_t i = 0; a[i] != '\0' && a[i] == b[i]; i++)
        if (a[i] == '.') length = i + 1;
    return length;
}

/* Name within a body layer: what follows the part by which two layers differ; without it the kind
 * of the layer. */
static const char *local_name(struct dl_import_net *net, const struct dl_import_stack *s,
                              int offset) {
    const char *a = net->items[s->first + offset].name;
    const char *b = net->items[s->first + s->each + offset].name;
    const char *dot = strchr(a + common(a, b), '.');
    const char *plain =
        dot != NULL && dot[1] != '\0' ? dot + 1 : net->items[s->first + offset].layer.kind->name;
    const char *name = plain;
    for (int number = 2; name != NULL; number++) {
        bool taken = false;
        for (int i = 0; i < offset; i++) taken = taken || strcmp(s->local[i], name) == 0;
        if (!taken) break;
        name = dl_arena_printf(net->arena, "%s%d", plain, number);
    }
    return name;
}

/* "layers" of "layers.0.attention.query" and "layers.1.attention.query"; else "h". */
static const char *stack_name(struct dl_import_net *net, const struct dl_import_stack *s) {
    for (int i = 0; i < s->each; i++) {
        const char *a = net->items[s->first + i].name, *b = net->items[s->first + s->each + i].name;
        const size_t length = common(a, b);
        if (length < 2 || strchr(a + length, '.') == NULL) continue;
        const char *name = dl_arena_strndup(net->arena, a, length - 1);
        bool taken = name == NULL;
        for (int k = 0; k < net->item_count && !taken; k++)
            taken = !dl_import_in_stack(s, k) && strcmp(net->items[k].name, name) == 0;
        if (!taken) return name;
    }
    return "h";
}

/* "a.3.b" is the form of names of the stack alone. */
static const char *without_number(struct dl_arena *arena, const char *name) {
    char *copy = dl_arena_strdup(arena, name);
    for (char *dot = copy; dot != NULL && (dot = strchr(dot, '.')) != NULL; dot++) {
        const size_t digits = strspn(dot + 1, "0123456789");
        if (digits > 0 && dot[1 + digits] == '.') *dot = '_';
    }
    return copy;
}

static void rename_items(struct dl_import_net *net, struct dl_import_stack *s) {
    s->local = dl_arena_alloc(net->arena, (size_t)s->each, sizeof *s->local);
    for (int i = 0; i < s->each; i++) {
        s->local[i] = local_name(net, s, i);
    }
    s->name = stack_name(net, s);
    for (int i = 0; i < net->item_count; i++) {
        const int at = i - s->first;
        const char *name = dl_import_in_stack(s, i)
                               ? dl_arena_printf(net->arena, "%s.%d.%s", s->name, at / s->each,
                                                 s->local[at % s->each])
                               : without_number(net->arena, net->items[i].name);
        net->items[i].name = name;
    }
}

void dl_import_find_stack(struct dl_import_net *net, struct dl_import_stack *out) {
    struct dl_import_stack s = {.vocabulary = NAN};
    int attention;
    *out = (struct dl_import_stack){.count = 0};
    if (!spacing(net, &attention, &s.count, &s.each)) return;
    const int count = s.count;
    bool found = false;
    for (s.first = attention; s.first > attention - s.each && s.first >= 0; s.first--) {
        s.count = count;
        found = is_stack(net, &s);
        if (found) break;
    }
    if (!found) return;
    const struct dl_layer *core = &net->items[attention].layer;
    s.hidden = dl_net_shape(net, s.first - 1)->channels;
    s.heads = core->attention.heads;
    s.tokens = core->out.size[DL_DIMS - 1];
    const struct dl_layer *table = &net->items[0].layer;
    if (net->tokens && table->kind == &dl_layer_embedding) s.vocabulary = table->rows;
    rename_items(net, &s);
    *out = s;
}
