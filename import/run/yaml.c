/* yaml.c - see the header. */
#include "import/run/yaml.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/text.h"

/* ---- interpolation ---- */

enum { MAX_DEPTH = 16 };

static const char *resolved(const struct dl_arguments *a, const char *owner, const char *value,
                            int depth);

static const char *value_at(const struct dl_arguments *a, const char *path, int depth) {
    for (int i = 0; i < a->count; i++)
        if (strcmp(a->all[i].name, path) == 0 && a->all[i].value != NULL)
            return resolved(a, path, a->all[i].value, depth + 1);
    return NULL;
}

/* "a.b" from the root, ".b" from the owner's section, "..b" from the one above. A launcher nests
 * the file itself in one section more ("training.model.x"). */
static const char *referred(const struct dl_arguments *a, const char *owner, const char *path,
                            int depth) {
    size_t up = strlen(owner);
    if (*path != '.') {
        const char *value = value_at(a, path, depth), *dot = strchr(path, '.');
        return value != NULL || dot == NULL ? value : value_at(a, dot + 1, depth);
    }
    for (; *path == '.'; path++) {
        while (up > 0 && owner[up - 1] != '.') up--;
        if (up > 0) up--;
    }
    return value_at(
        a, dl_arena_printf(a->arena, "%.*s%s%s", (int)up, owner, up > 0 ? "." : "", path), depth);
}

/* The end of "${...}" at `from`, behind the bracket; NULL: none. */
static const char *bracket_end(const char *from) {
    int depth = 0;
    for (const char *at = from; *at != '\0'; at++) {
        depth += *at == '{';
        if (*at == '}' && --depth == 0) return at + 1;
    }
    return NULL;
}

/* The next argument of a resolver, without the blanks around it; *at moves behind its comma. */
static const char *next_part(struct dl_arena *arena, const char **at, const char *end) {
    const char *from = *at, *to = from;
    int depth = 0;
    while (to < end && (*to != ',' || depth > 0)) {
        depth += (*to == '{') - (*to == '}');
        to++;
    }
    *at = to < end ? to + 1 : end;
    while (from < to && (*from == ' ' || *from == '\'' || *from == '"')) from++;
    while (to > from && (to[-1] == ' ' || to[-1] == '\'' || to[-1] == '"')) to--;
    return dl_arena_strndup(arena, from, (size_t)(to - from));
}

/* multiply, divide, add and their like over numbers. */
static const char *computed(const struct dl_arguments *a, const char *owner, const char *name,
                            const char *at, const char *end, int depth) {
    double value = NAN;
    for (bool first = true; at < end; first = false) {
        char *rest;
        const char *part = resolved(a, owner, next_part(a->arena, &at, end), depth + 1);
        const double number = strtod(part, &rest);
        if (rest == part || *rest != '\0') return NULL;
        if (first)
            value = number;
        else if (strncmp(name, "multiply", 8) == 0 || strncmp(name, "mul", 3) == 0)
            value *= number;
        else if (strstr(name, "div") != NULL)
            value = strstr(name, "int") != NULL || strstr(name, "floor") != NULL
                        ? floor(value / number)
                        : value / number;
        else if (strncmp(name, "add", 3) == 0 || strncmp(name, "sum", 3) == 0)
            value += number;
        else if (strncmp(name, "sub", 3) == 0)
            value -= number;
        else
            return NULL;
    }
    return isfinite(value) ? dl_arena_printf(a->arena, "%.15g", value) : NULL;
}

/* What stands in "${...}": NULL: not decided by the file. */
static const char *inside(const struct dl_arguments *a, const char *owner, const char *from,
                          const char *to, int depth) {
    const char *colon = memchr(from, ':', (size_t)(to - from));
    if (colon == NULL)
        return referred(a, owner, dl_arena_strndup(a->arena, from, (size_t)(to - from)), depth);
    const char *name = dl_arena_strndup(a->arena, from, (size_t)(colon - from)), *at = colon + 1;
    if (strcmp(name, "oc.env") == 0 || strcmp(name, "env") == 0) {
        (void)next_part(a->arena, &at, to);
        return at < to ? next_part(a->arena, &at, to) : NULL;
    }
    return computed(a, owner, name, at, to, depth);
}

static const char *resolved(const struct dl_arguments *a, const char *owner, const char *value,
                            int depth) {
    struct dl_text out = {.arena = a->arena};
    if (strstr(value, "${") == NULL || depth > MAX_DEPTH) return value;
    while (*value != '\0') {
        const char *end = strncmp(value, "${", 2) == 0 ? bracket_end(value + 1) : NULL;
        const char *text = end != NULL ? inside(a, owner, value + 2, end - 1, depth + 1) : NULL;
        if (text != NULL) {
            dl_text_add(&out, text);
            value = end;
        } else {
            dl_text_add_bytes(&out, value++, 1);
        }
        if (out.length > 65536) return "";
    }
    return dl_text_string(&out);
}

static void resolve(struct dl_arguments *a) {
    const char **values = dl_arena_alloc(a->arena, (size_t)a->count + 1, sizeof *values);
    for (int i = 0; i < a->count; i++)
        values[i] =
            a->all[i].value == NULL ? NULL : resolved(a, a->all[i].name, a->all[i].value, 0);
    for (int i = 0; i < a->count; i++) a->all[i].value = values[i];
}

#ifndef DL_HAVE_LIBYAML
enum dl_code dl_yaml_read(const char *text, size_t length, struct dl_arguments *out,
                          struct dl_err *err) {
    (void)text, (void)length;
    resolve(out);
    return dl_fail(err, DL_ERR_BACKEND,
                   "this dlmodel was built without libyaml, which reads YAML: install libyaml-dev "
                   "and build again");
}
#else
#include <yaml.h>

struct reader {
    yaml_document_t *document;
    struct dl_arguments *out;
    struct dl_err *err;
    int visits; /* of nodes; aliases may name one node many times */
};

static enum dl_code fail(struct reader *r, const yaml_node_t *node, const char *message) {
    return dl_fail_at(r->err, r->out->path, (int)node->start_mark.line + 1,
                      (int)node->start_mark.column + 1, NULL, "%s", message);
}

static enum dl_code add_node(struct reader *r, const char *path, const yaml_node_t *node,
                             int depth);

/* A list is its scalars, one a line; mappings in it are members of the list's path. */
static enum dl_code add_list(struct reader *r, const char *path, const yaml_node_t *node,
                             int depth) {
    struct dl_text text = {.arena = r->out->arena};
    int number = 0;
    for (yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++, number++) {
        const yaml_node_t *element = yaml_document_get_node(r->document, *item);
        if (++r->visits > DL_ARGUMENTS * 8) return fail(r, node, "more elements than are read");
        if (element->type == YAML_SCALAR_NODE)
            dl_text_printf(&text, "%s\n", (const char *)element->data.scalar.value);
        else
            DL_TRY(add_node(r, dl_arena_printf(r->out->arena, "%s.%d", path, number), element,
                            depth + 1));
    }
    DL_TRY(dl_arguments_add(r->out, path, dl_text_string(&text), (int)node->start_mark.line + 1,
                            r->err));
    for (int i = 0; i < r->out->count; i++)
        if (strcmp(r->out->all[i].name, path) == 0) r->out->all[i].list = true;
    return DL_OK;
}

static enum dl_code add_scalar(struct reader *r, const char *path, const yaml_node_t *node) {
    const char *value = (const char *)node->data.scalar.value;
    const bool plain = node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    if (strlen(value) != node->data.scalar.length) return fail(r, node, "a zero byte in a value");
    if (plain && (value[0] == '\0' || strcmp(value, "null") == 0 || strcmp(value, "~") == 0 ||
                  strcmp(value, "None") == 0))
        return DL_OK; /* as if absent */
    return dl_arguments_add(r->out, path, dl_arena_strdup(r->out->arena, value),
                            (int)node->start_mark.line + 1, r->err);
}

static enum dl_code add_node(struct reader *r, const char *path, const yaml_node_t *node,
                             int depth) {
    if (depth > 32 || ++r->visits > DL_ARGUMENTS * 8)
        return fail(r, node, "deeper or more than a configuration is");
    if (node->type == YAML_SCALAR_NODE) return add_scalar(r, path, node);
    if (node->type == YAML_SEQUENCE_NODE) return add_list(r, path, node, depth);
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(r->document, pair->key),
                          *value = yaml_document_get_node(r->document, pair->value);
        if (key->type != YAML_SCALAR_NODE) return fail(r, key, "expected a key");
        const char *name = (const char *)key->data.scalar.value;
        const bool merge = strcmp(name, "<<") == 0;
        DL_TRY(add_node(r,
                        merge ? path
                              : dl_arena_printf(r->out->arena, "%s%s%s", path,
                                                path[0] != '\0' ? "." : "", name),
                        value, depth + 1));
    }
    return DL_OK;
}

static enum dl_code read_documents(yaml_parser_t *parser, struct dl_arguments *out,
                                   struct dl_err *err) {
    for (;;) {
        yaml_document_t document;
        if (!yaml_parser_load(parser, &document))
            return dl_fail_at(err, out->path, (int)parser->problem_mark.line + 1,
                              (int)parser->problem_mark.column + 1, NULL, "%s",
                              parser->problem != NULL ? parser->problem : "expected YAML");
        const yaml_node_t *root = yaml_document_get_root_node(&document);
        struct reader r = {.document = &document, .out = out, .err = err};
        enum dl_code code = DL_OK;
        if (root != NULL && root->type != YAML_SCALAR_NODE) code = add_node(&r, "", root, 0);
        yaml_document_delete(&document);
        if (code != DL_OK || root == NULL) return code;
    }
}

enum dl_code dl_yaml_read(const char *text, size_t length, struct dl_arguments *out,
                          struct dl_err *err) {
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return dl_fail(err, DL_ERR_SYSTEM, "out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    const enum dl_code code = read_documents(&parser, out, err);
    yaml_parser_delete(&parser);
    if (code == DL_OK) resolve(out);
    return code;
}
#endif
