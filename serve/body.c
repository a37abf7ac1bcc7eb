/* body.c - parses the options of requests. A request cannot open files: it names data of the
 * service or contains its own documents. */
#include "serve/body.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/json_node.h"
#include "model/core/text.h"

enum { MAX_LIST = 1024 }; /* values of one option */

/* Options that concern files of this machine, the process, or the output format. */
static const char *const withheld[] = {"output",       "format", "json",  "csv",       "help",
                                       "trace",        "data",   "color", "threads",   "write",
                                       "tables",       "shard",  "merge", "intervals", "markdown",
                                       "measured-dir", NULL};

static bool is_withheld(const char *name) {
    for (int i = 0; withheld[i] != NULL; i++) {
        if (strcmp(withheld[i], name) == 0) return true;
    }
    return false;
}

bool dl_option_takes_list(const struct dl_option *option) {
    const struct dl_value *v = option->value;
    if (option->argument == NULL) return false;
    if (v == NULL) return true;
    if (v->kind == DL_VALUE_NUMBER || v->kind == DL_VALUE_INTEGER) return false;
    return v->choices == NULL || v->repeatable || v->members != NULL ||
           (v->kind != DL_VALUE_CHOICE && v->kind != DL_VALUE_WORD);
}

bool dl_option_takes_document(const struct dl_option *option) {
    return option->argument != NULL && strstr(option->argument, "FILE") != NULL;
}

const struct dl_option *dl_request_option(const struct dl_command *command, const char *name) {
    if (is_withheld(name)) return NULL;
    for (int t = 0; command->options[t] != NULL; t++) {
        for (const struct dl_option *o = command->options[t]; o->name != NULL; o++) {
            if (strcmp(o->name, name) == 0) return o;
        }
    }
    return NULL;
}

enum dl_code dl_words_add(struct dl_words *words, char *word, struct dl_err *err) {
    if (words->count == DL_MAX_WORDS)
        return dl_fail(err, DL_ERR_USAGE, "expected at most %d values", DL_MAX_WORDS);
    words->list[words->count++] = word;
    return DL_OK;
}

static bool is_taken(const struct dl_words *words, const char *name) {
    for (int i = 0; i < words->attached_count; i++) {
        if (strcmp(words->attached[i].name, name) == 0) return true;
    }
    return false;
}

enum dl_code dl_words_attach(struct dl_words *words, const char *name, const char *text,
                             size_t bytes, struct dl_arena *arena, const char **name_out,
                             struct dl_err *err) {
    if (words->attached_count == DL_MAX_ATTACHED)
        return dl_fail(err, DL_ERR_USAGE, "expected at most %d documents", DL_MAX_ATTACHED);
    const char *own = name;
    for (int i = 2; own != NULL && is_taken(words, own); i++)
        own = dl_arena_printf(arena, "%s (%d)", name, i);
    words->attached[words->attached_count++] =
        (struct dl_attachment){.name = own, .text = text, .length = bytes};
    *name_out = own;
    return DL_OK;
}

/* A value of the request with its context. */
struct place {
    const struct dl_json *doc;
    const struct dl_json_node *node;
    const char *key;
    struct dl_arena *arena;
    struct dl_words *words;
    struct dl_err *err;
};

static enum dl_code refuse(const struct place *p, const char *expected) {
    int line = 0, col = 0;
    dl_json_position(p->doc->text, p->doc->length, p->node->place, &line, &col);
    return dl_fail_at(p->err, p->doc->name, line, col, p->key, "%s", expected);
}

/* Whether it is a name and not a path. */
static bool is_name(const char *text) {
    return strchr(text, '/') == NULL && !dl_ends_in(text, ".json") && text[0] != '.';
}

/* The text of a scalar; NULL: not one. */
static const char *scalar(const struct dl_json_node *node, struct dl_arena *arena) {
    char number[DL_NUMBER_TEXT];
    if (node->kind == DL_JSON_STRING) return node->string;
    if (node->kind != DL_JSON_NUMBER) return NULL;
    dl_number_text(node->number, number);
    return dl_arena_strdup(arena, number);
}

static size_t end_of_value(const struct dl_json *doc, size_t at) {
    int depth = 0;
    if (doc->text[at] != '{' && doc->text[at] != '[')
        return dl_json_skip_scalar(doc->text, doc->length, at);
    do {
        const char c = doc->text[at];
        if (c == '{' || c == '[') depth++;
        if (c == '}' || c == ']') depth--;
        at = c == '"' ? dl_json_skip_scalar(doc->text, doc->length, at) : at + 1;
    } while (depth > 0 && at < doc->length);
    return at;
}

const char *dl_body_value(const struct dl_json *doc, const struct dl_json_node *node,
                          struct dl_arena *arena, size_t *bytes) {
    *bytes = end_of_value(doc, node->place) - node->place;
    return dl_arena_strndup(arena, doc->text + node->place, *bytes);
}

/* {"name": ..., "text": ...} is a table, any other object a JSON document. */
static enum dl_code attach(const struct place *p, const char **path) {
    const struct dl_json_node *name = dl_json_member(p->node, "name", 4),
                              *text = dl_json_member(p->node, "text", 4);
    if (text != NULL && text->kind == DL_JSON_STRING && p->node->child_count <= 2) {
        const char *shown = name != NULL && name->kind == DL_JSON_STRING ? name->string : p->key;
        return dl_words_attach(p->words, shown, text->string, strlen(text->string), p->arena, path,
                               p->err);
    }
    size_t bytes;
    const char *copy = dl_body_value(p->doc, p->node, p->arena, &bytes);
    return dl_words_attach(p->words, p->key, copy, bytes, p->arena, path, p->err);
}

static enum dl_code add_value(const struct place *p, const struct dl_option *option,
                              const char *text) {
    /* Units contain '/'; --set takes only quantities. */
    const bool quantity = option->value != NULL && option->value->kind == DL_VALUE_NUMBER;
    if (!quantity && strcmp(option->name, "set") != 0 && !is_name(text))
        return refuse(p, "expected a name; a request cannot open files of this machine");
    return dl_words_add(p->words, dl_arena_printf(p->arena, "--%s=%s", option->name, text), p->err);
}

static enum dl_code add_scalar(const struct place *p, const struct dl_option *option) {
    if (option->argument == NULL) {
        if (p->node->kind != DL_JSON_BOOL) return refuse(p, "expected true or false");
        return p->node->boolean
                   ? dl_words_add(p->words, dl_arena_printf(p->arena, "--%s", option->name), p->err)
                   : DL_OK;
    }
    const char *text = scalar(p->node, p->arena);
    if (text == NULL)
        return refuse(p, "expected text or a number; null and nested lists have no meaning here");
    if (dl_option_takes_document(option) && strstr(option->argument, "NAME") == NULL)
        return refuse(p, "expected a document: {\"name\": \"runs.csv\", \"text\": \"...\"}");
    return add_value(p, option, text);
}

/* Repeats a repeatable option; joins other values by commas. */
static enum dl_code add_list(struct place p, const struct dl_option *option) {
    struct dl_text joined = {.arena = p.arena};
    if (!dl_option_takes_list(option)) return refuse(&p, "expected one value, not a list");
    if (p.node->child == NULL) return refuse(&p, "expected a list of at least one value");
    if (p.node->child_count > MAX_LIST) return refuse(&p, "expected a list of at most 1024 values");
    for (const struct dl_json_node *n = p.node->child; n != NULL; n = n->next) {
        struct place item = p;
        item.node = n;
        const char *text = scalar(n, p.arena);
        if (text == NULL) return refuse(&item, "expected a list of texts or numbers");
        if (dl_option_repeatable(option)) {
            DL_TRY(add_scalar(&item, option));
            continue;
        }
        if (n != p.node->child) dl_text_add(&joined, ",");
        dl_text_add(&joined, text);
    }
    if (dl_option_repeatable(option)) return DL_OK;
    return add_value(&p, option, dl_text_string(&joined));
}

/* "set": {"links.inter.bandwidth": "25GB/s"} */
static enum dl_code add_settings(struct place p, const struct dl_option *option) {
    for (const struct dl_json_node *n = p.node->child; n != NULL; n = n->next) {
        struct place item = p;
        item.node = n;
        const char *text =
            n->kind == DL_JSON_BOOL ? (n->boolean ? "true" : "false") : scalar(n, p.arena);
        if (text == NULL) return refuse(&item, "expected text, a number, true or false");
        DL_TRY(dl_words_add(
            p.words, dl_arena_printf(p.arena, "--%s=%s=%s", option->name, n->key, text), p.err));
    }
    return DL_OK;
}

static enum dl_code add_files(struct place p) {
    if (p.node->kind != DL_JSON_ARRAY)
        return refuse(&p, "expected a list of {\"name\": ..., \"text\": ...}");
    for (const struct dl_json_node *n = p.node->child; n != NULL; n = n->next) {
        struct place item = p;
        const char *path = NULL;
        item.node = n;
        if (n->kind != DL_JSON_OBJECT) return refuse(&item, "expected an object");
        DL_TRY(attach(&item, &path));
        if (path[0] == '-') return refuse(&item, "expected a name that does not begin with '-'");
        DL_TRY(dl_words_add(p.words, dl_arena_strdup(p.arena, path), p.err));
    }
    return DL_OK;
}

static enum dl_code add_member(const struct place *p, const struct dl_command *command) {
    char name[64];
    snprintf(name, sizeof name, "%s", p->key);
    for (char *c = name; *c != '\0'; c++) *c = *c == '_' ? '-' : *c;
    if (strcmp(name, "files") == 0) return add_files(*p);
    const struct dl_option *option = dl_request_option(command, name);
    if (option == NULL)
        return refuse(p, is_withheld(name)
                             ? "a request cannot give this option of the command line"
                             : "expected an option of this command; see /v1/openapi.json");
    if (p->node->kind == DL_JSON_ARRAY) return add_list(*p, option);
    if (p->node->kind != DL_JSON_OBJECT) return add_scalar(p, option);
    if (strcmp(name, "set") == 0) return add_settings(*p, option);
    if (!dl_option_takes_document(option)) return refuse(p, "expected a value, not an object");
    const char *path = NULL;
    DL_TRY(attach(p, &path));
    return dl_words_add(p->words, dl_arena_printf(p->arena, "--%s=%s", option->name, path), p->err);
}

enum dl_code dl_words_of_body(const struct dl_command *command, const char *body, size_t bytes,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err) {
    struct dl_json *doc = NULL;
    if (bytes == 0) return DL_OK; /* all defaults */
    DL_TRY(dl_json_parse("request", body, bytes, arena, &doc, err));
    struct place p = {.doc = doc, .node = doc->root, .arena = arena, .words = out, .err = err};
    if (doc->root->kind != DL_JSON_OBJECT) return refuse(&p, "expected an object of options");
    for (const struct dl_json_node *n = doc->root->child; n != NULL; n = n->next) {
        p.node = n;
        p.key = n->key;
        DL_TRY(add_member(&p, command));
    }
    return DL_OK;
}

static int hex(int c) { return isdigit(c) ? c - '0' : isxdigit(c) ? tolower(c) - 'a' + 10 : -1; }

/* Decodes %41 and + in place; a NUL ends the text. */
static void decode(char *text) {
    char *to = text;
    for (const char *from = text; *from != '\0'; from++) {
        const int high = *from == '%' ? hex((unsigned char)from[1]) : -1,
                  low = high >= 0 ? hex((unsigned char)from[2]) : -1;
        if (low >= 0) {
            *to++ = (char)(16 * high + low);
            from += 2;
        } else {
            *to++ = *from == '+' ? ' ' : *from;
        }
    }
    *to = '\0';
}

enum dl_code dl_words_of_form(const struct dl_command *command, const char *query,
                              struct dl_arena *arena, struct dl_words *out, struct dl_err *err) {
    char *text = dl_arena_strdup(arena, query), *next = NULL;
    for (char *pair = strtok_r(text, "&", &next); pair != NULL; pair = strtok_r(NULL, "&", &next)) {
        char *value = strchr(pair, '=');
        if (value == NULL) continue;
        *value++ = '\0';
        decode(pair);
        decode(value);
        if (value[0] == '\0') continue;
        for (char *c = pair; *c != '\0'; c++) *c = *c == '_' ? '-' : *c;
        const struct dl_option *option = dl_request_option(command, pair);
        if (option == NULL)
            return dl_fail_at(err, "form", 0, 0, pair, "expected an option of this command");
        if (option->argument == NULL && strcmp(value, "false") == 0) continue;
        if (option->argument == NULL && strcmp(value, "true") != 0)
            return dl_fail_at(err, "form", 0, 0, pair, "expected true or false");
        const bool quantity = option->value != NULL && option->value->kind == DL_VALUE_NUMBER;
        if (!quantity && strcmp(pair, "set") != 0 && !is_name(value))
            return dl_fail_at(err, "form", 0, 0, pair, "expected a name, not a path");
        DL_TRY(dl_words_add(out,
                            option->argument == NULL
                                ? dl_arena_printf(arena, "--%s", pair)
                                : dl_arena_printf(arena, "--%s=%s", pair, value),
                            err));
    }
    return DL_OK;
}
