/* import_stack.h - the stack of equal layers of an imported transformer: repeated items around one
 * attention each, of which one block of the workload is made, so that strategies that split
 * transformers recognize it. */
#ifndef DL_IMPORT_IMPORT_STACK_H
#define DL_IMPORT_IMPORT_STACK_H

#include "import/import_layers.h"

struct dl_import_stack {
    int first, count, each; /* first item, body layers, items of one; count 0: none */
    const char *name;       /* of the stack: "layers" */
    const char **local;     /* names of the items of one body layer within it */
    double hidden, heads, tokens, vocabulary; /* vocabulary NAN: not known */
};

/* Finds the stack and renames its items to STACK.NUMBER.LOCAL, other items so that no name looks
 * like those; no stack is no error. */
void dl_import_find_stack(struct dl_import_net *net, struct dl_import_stack *out);

/* Whether the item is in the stack. */
bool dl_import_in_stack(const struct dl_import_stack *stack, int item);

/* The text of the workload file. */
const char *dl_import_text(const struct dl_import_net *net, const struct dl_import_stack *stack,
                           const char *name);

/* The text of an item without its name and inputs: equal for equal layers. */
const char *dl_import_geometry_text(const struct dl_import_net *net,
                                    const struct dl_import_stack *stack, int item);

#endif
