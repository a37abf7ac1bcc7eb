/* import_config_pattern.c - the order of layers of several kinds in a config.json. */
#include <stdio.h>
#include <string.h>

#include "import/import_config.h"

/* Words of layer_types and layers_block_type; '.' stands for the family's layer with a state. */
static char letter_of(const struct dl_json_node *n, char letter) {
    static const struct {
        const char *word;
        char letter;
    } words[] = {{"full_attention", '*'}, {"attention", '*'}, {"linear_attention", '.'},
                 {"mamba", '.'},          {"mlp", '-'},       {"moe", 'E'}};
    if (n->kind == DL_JSON_NUMBER) return n->number == 1 ? '*' : n->number == 0 ? letter : '\0';
    for (size_t i = 0; n->kind == DL_JSON_STRING && i < sizeof words / sizeof *words; i++)
        if (strcmp(n->string, words[i].word) == 0)
            return words[i].letter == '.' ? letter : words[i].letter;
    return '\0';
}

/* Once over. */
static void shorten(char *pattern) {
    const size_t length = strlen(pattern);
    for (size_t period = 1; period < length; period++) {
        if (length % period != 0 || memcmp(pattern, pattern + period, length - period) != 0)
            continue;
        pattern[period] = '\0';
        return;
    }
}

const char *dl_config_pattern(const struct dl_json_node *node, char letter, double *layers_out,
                              struct dl_arena *arena, const char **fault) {
    enum { MOST = 10000 };
    char *pattern = NULL;
    if (node->kind == DL_JSON_NUMBER && node->number >= 1 && node->number <= MOST) {
        const size_t every = (size_t)node->number; /* the last of so many has attention */
        pattern = dl_arena_alloc(arena, every + 1, 1);
        memset(pattern, letter, every);
        pattern[every - 1] = '*';
        return pattern;
    }
    if (node->kind == DL_JSON_STRING && node->string[0] != '\0') {
        const size_t known = strspn(node->string, "M*-E");
        *fault = dl_arena_printf(arena, "expected the letters M, *, - and E, found '%.8s'",
                                 node->string + known);
        if (node->string[known] != '\0') return NULL;
        pattern = dl_arena_strdup(arena, node->string);
    }
    *fault = "expected a list of kinds of layers";
    if (node->kind == DL_JSON_ARRAY && node->child_count > 0 && node->child_count <= MOST) {
        pattern = dl_arena_alloc(arena, (size_t)node->child_count + 1, 1);
        size_t i = 0;
        for (const struct dl_json_node *e = node->child; e != NULL; e = e->next) {
            pattern[i] = letter_of(e, letter);
            if (pattern[i++] != '\0') continue;
            *fault = dl_arena_printf(arena,
                                     "the model has layers of type \"%.40s\", for which no "
                                     "workload has a layer",
                                     e->kind == DL_JSON_STRING ? e->string : "?");
            return NULL;
        }
    }
    if (pattern == NULL) return NULL;
    *layers_out = (double)strlen(pattern);
    shorten(pattern);
    return pattern;
}
