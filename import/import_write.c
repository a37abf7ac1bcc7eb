/* import_write.c - layers of an ONNX model as the text of a workload file. Sizes of a stack that
 * are multiples of its width are written as such, so that --set hidden=N changes all of them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/import_stack.h"
#include "model/core/text.h"

static void extents(struct dl_json_writer *w, const char *key, const double *values, int dims,
                    double usual) {
    const double *own = values + DL_DIMS - dims;
    bool same = true, is_usual = true;
    for (int i = 0; i < dims; i++) {
        same = same && own[i] == own[0];
        is_usual = is_usual && own[i] == usual;
    }
    if (is_usual) return;
    if (same) {
        dl_jw_number(w, key, own[0]);
        return;
    }
    dl_jw_array(w, key);
    for (int i = 0; i < dims; i++) dl_jw_number(w, NULL, own[i]);
    dl_jw_end(w);
}

/* A size in terms of the stack's width, heads or vocabulary where it is one; else the number. */
static void write_size(struct dl_json_writer *w, const struct dl_import_stack *s, unsigned key,
                       const char *name, double value) {
    char text[48];
    const double times = s->hidden > 0 ? value / s->hidden : 0;
    text[0] = '\0';
    if (key == DL_KEY_OUT && value == s->vocabulary)
        snprintf(text, sizeof text, "vocab");
    else if (key == DL_KEY_OUT && times == 1)
        snprintf(text, sizeof text, "hidden");
    else if (key == DL_KEY_OUT && times > 1 && times == floor(times))
        snprintf(text, sizeof text, "%.0f*hidden", times);
    else if (key == DL_KEY_ROWS && value == s->vocabulary)
        snprintf(text, sizeof text, "vocab");
    else if (key == DL_KEY_HEADS && value == s->heads)
        snprintf(text, sizeof text, "heads");
    if (text[0] != '\0')
        dl_jw_string(w, name, text);
    else
        dl_jw_number(w, name, value);
}

static void write_numbers(struct dl_json_writer *w, const struct dl_import_stack *s,
                          const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    const struct {
        unsigned key;
        const char *name;
        double value, usual;
    } numbers[] = {
        {DL_KEY_OUT, "out", l->requested.hidden, 0},
        {DL_KEY_GROUPS, "groups", l->groups, 1},
        {DL_KEY_HEADS, "heads", l->attention.heads, 0},
        {DL_KEY_KV_HEADS, "kv_heads", l->attention.kv_heads,
         l->attention.kv_heads > 0 ? l->attention.heads : 0},
        {DL_KEY_ROWS, "rows", l->rows, 0},
        {DL_KEY_SCALE, "scale", l->requested.scale, 0},
        {DL_KEY_DROPOUT, "dropout", l->dropout, -1},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const bool zero = numbers[i].key == DL_KEY_DROPOUT && l->dropout == 0 &&
                          (l->kind->needs & DL_KEY_DROPOUT) == 0;
        if ((keys & numbers[i].key) != 0 && numbers[i].value != numbers[i].usual && !zero)
            write_size(w, s, numbers[i].key, numbers[i].name, numbers[i].value);
    }
    if ((keys & DL_KEY_TOKENS) != 0 && l->requested.tokens > 0)
        dl_jw_number(w, "tokens", l->requested.tokens);
}

static void write_geometry(struct dl_json_writer *w, const struct dl_import_stack *s,
                           const struct dl_layer *l) {
    const unsigned keys = l->kind->needs | l->kind->takes;
    const int dims = l->in.dims;
    const bool pools = (keys & DL_KEY_KERNEL) != 0 && (keys & DL_KEY_OUT) == 0;
    write_numbers(w, s, l);
    if ((keys & DL_KEY_KERNEL) != 0) extents(w, "kernel", l->window.kernel, dims, 0);
    if ((keys & DL_KEY_STRIDE) != 0) extents(w, "stride", l->window.stride, dims, pools ? 0 : 1);
    if ((keys & DL_KEY_PAD) != 0) extents(w, "pad", l->window.pad, dims, 0);
    if ((keys & DL_KEY_DILATION) != 0) extents(w, "dilation", l->window.dilation, dims, 1);
    if ((keys & DL_KEY_CAUSAL) != 0 && l->attention.causal) dl_jw_number(w, "causal", 1);
    if ((keys & DL_KEY_BIAS) != 0 && l->bias) dl_jw_bool(w, "bias", true);
    if ((keys & DL_KEY_CEIL) != 0 && l->window.ceil_mode) dl_jw_bool(w, "ceil", true);
    if ((keys & DL_KEY_BIDIRECTIONAL) != 0 && l->bidirectional)
        dl_jw_bool(w, "bidirectional", true);
}

const char *dl_import_geometry_text(const struct dl_import_net *net,
                                    const struct dl_import_stack *stack, int item) {
    struct dl_json_writer w;
    dl_jw_init(&w, net->arena, true);
    dl_jw_object(&w, NULL);
    write_geometry(&w, stack, &net->items[item].layer);
    dl_jw_end(&w);
    return w.text;
}

/* Name of an item as the list with item `reader` has it: within the block of the stack, what comes
 * in is "in"; outside, the stack's last output goes by its name. */
static const char *item_name(const struct dl_import_net *net, const struct dl_import_stack *s,
                             int item, int reader) {
    const int end = s->first + s->count * s->each - 1;
    if (dl_import_in_stack(s, reader)) return item < s->first ? "in" : s->local[item - s->first];
    if (s->count > 0 && item == end) return s->name;
    return item < 0 ? "input" : net->items[item].name;
}

static const char *layer_line(const struct dl_import_net *net, const struct dl_import_stack *s,
                              int index) {
    const struct dl_import_item *item = &net->items[index];
    const struct dl_layer *l = &item->layer;
    struct dl_json_writer w;
    dl_jw_init(&w, net->arena, true);
    dl_jw_object(&w, NULL);
    dl_jw_string(&w, "name",
                 dl_import_in_stack(s, index) ? s->local[index - s->first] : item->name);
    dl_jw_string(&w, "kind", l->kind->name);
    if (l->input_count > 1 || l->inputs[0] != index - 1) {
        dl_jw_array(&w, "from");
        for (int i = 0; i < l->input_count; i++)
            dl_jw_string(&w, NULL, item_name(net, s, l->inputs[i], index));
        dl_jw_end(&w);
    }
    write_geometry(&w, s, l);
    if (item->tied >= 0) dl_jw_string(&w, "tied", net->items[item->tied].name);
    dl_jw_end(&w);
    return w.text;
}

static bool has_kind(const struct dl_import_net *net, const struct dl_layer_kind *kind) {
    for (int i = 0; i < net->item_count; i++) {
        if (net->items[i].layer.kind == kind) return true;
    }
    return false;
}

/* The extents of the input are parameters, so that --set can change them; so are the sizes of a
 * stack. */
static void write_input(struct dl_json_writer *w, const struct dl_import_net *net,
                        const struct dl_import_stack *stack) {
    static const char *const names[DL_DIMS] = {"depth", "height", "width"};
    const struct dl_shape *s = &net->input;
    dl_jw_object(w, "parameters");
    if (stack->count > 0) {
        dl_jw_integer(w, "layers", stack->count);
        dl_jw_number(w, "hidden", stack->hidden);
        dl_jw_number(w, "heads", stack->heads);
        if (dl_known(stack->vocabulary)) dl_jw_number(w, "vocab", stack->vocabulary);
        if (!net->tokens) dl_jw_number(w, "seq", stack->tokens);
    }
    for (int d = DL_DIMS - s->dims; d < DL_DIMS; d++)
        dl_jw_number(w, net->tokens ? "seq" : s->dims == 1 ? "length" : names[d], s->size[d]);
    dl_jw_end(w);
    dl_jw_object(w, "input");
    if (net->tokens) {
        dl_jw_string(w, "tokens", "seq");
    } else {
        dl_jw_number(w, "channels", s->channels);
        if (s->dims > 0) dl_jw_array(w, "size");
        for (int d = DL_DIMS - s->dims; d < DL_DIMS; d++)
            dl_jw_string(w, NULL, s->dims == 1 ? "length" : names[d]);
        if (s->dims > 0) dl_jw_end(w);
    }
    dl_jw_end(w);
}

/* The block of one body layer. */
static void add_block(struct dl_text *text, const struct dl_import_net *net,
                      const struct dl_import_stack *s) {
    if (s->count == 0) return;
    dl_text_add(text, "  \"blocks\": [{\"name\": \"layer\", \"layers\": [\n");
    for (int i = 0; i < s->each; i++)
        dl_text_printf(text, "    %s%s\n", layer_line(net, s, s->first + i),
                       i + 1 < s->each ? "," : "");
    dl_text_add(text, "  ]}],\n");
}

static void add_layers(struct dl_text *text, const struct dl_import_net *net,
                       const struct dl_import_stack *s) {
    dl_text_add(text, "  \"layers\": [\n");
    for (int i = 0; i < net->item_count; i++) {
        const bool first = s->count > 0 && i == s->first;
        if (dl_import_in_stack(s, i) && !first) continue;
        const char *line = first ? dl_arena_printf(net->arena,
                                                   "{\"name\":\"%s\",\"block\":\"layer\","
                                                   "\"repeat\":\"layers\"}",
                                                   s->name)
                                 : layer_line(net, s, i);
        const int after = first ? s->first + s->count * s->each : i + 1;
        dl_text_printf(text, "    %s%s\n", line, after < net->item_count ? "," : "");
    }
    dl_text_add(text, "  ]\n}\n");
}

const char *dl_import_text(const struct dl_import_net *net, const struct dl_import_stack *stack,
                           const char *name) {
    struct dl_json_writer head, input;
    const struct dl_onnx_graph *g = net->graph;
    const bool transformer = has_kind(net, &dl_layer_attention),
               rnn = has_kind(net, &dl_layer_lstm), cnn = has_kind(net, &dl_layer_conv);
    dl_jw_init(&head, net->arena, true);
    dl_jw_object(&head, NULL);
    dl_jw_string(&head, "name", name);
    dl_jw_string(&head, "summary",
                 dl_arena_printf(net->arena, "imported from %s: %.80s, opset %lld, by %.80s",
                                 g->format, g->name, (long long)g->opset, g->producer));
    dl_jw_string(&head, "source", "imported");
    if (transformer || rnn || cnn)
        dl_jw_string(&head, "family", transformer ? "transformer" : rnn ? "rnn" : "cnn");
    dl_jw_end(&head);
    dl_jw_init(&input, net->arena, true);
    dl_jw_object(&input, NULL);
    write_input(&input, net, stack);
    dl_jw_end(&input);
    struct dl_text text = {.arena = net->arena};
    /* Without their own braces the parts become members of one object. */
    head.text[strlen(head.text) - 1] = input.text[strlen(input.text) - 1] = '\0';
    dl_text_printf(&text, "{\n  \"format\": \"dlmodel-workload\", \"version\": 1,\n  %s,\n  %s,\n",
                   head.text + 1, input.text + 1);
    add_block(&text, net, stack);
    add_layers(&text, net, stack);
    return dl_text_string(&text);
}
