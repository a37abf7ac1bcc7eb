/* Layers that cannot be: each rule of each kind, just broken, with the key that is to blame and
 * every word; and just kept. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/check.h"
#include "tests/load_workload.h"

/* 16 channels of 8 x 8, a vector of 12, 8 tokens of 12 channels. */
#define HEAD "{'format':'dlmodel-workload','version':1,'name':'n','summary':'s','source':'y',"
#define IMAGE HEAD "'family':'cnn','input':{'channels':16,'size':[8,8]},'layers':["
#define VECTOR HEAD "'family':'cnn','input':{'channels':12,'size':[]},'layers':["
#define WORDS                                                                                      \
    HEAD "'family':'transformer','input':{'channels':1,'size':[8]},'layers':["                     \
         "{'kind':'embedding','name':'x','rows':9,'out':12},"

#define LINE HEAD "'family':'cnn','input':{'channels':16,'size':[8]},'layers':["
#define BLOCKS(definition, entries)                                                                \
    HEAD "'family':'cnn','input':{'channels':16,'size':[8,8]},'blocks':[" definition               \
         "],'layers':[" entries "]}"

static const struct {
    const char *text, *key, *message; /* message NULL: it can be */
} rows[] = {
    {LINE "{'kind':'maxpool','kernel':8}]}", NULL, NULL},
    {LINE "{'kind':'maxpool','kernel':9}]}", "kernel",
     "a window of 9 does not fit the padded input of 8"},
    {LINE "{'kind':'avgpool','kernel':2}]}", NULL, NULL},
    {LINE "{'kind':'global_pool'}]}", NULL, NULL},
    {LINE "{'kind':'adaptive_pool','size':3}]}", NULL, NULL},
    {LINE "{'kind':'upsample','scale':2}]}", NULL, NULL},
    {LINE "{'kind':'conv','out':6,'kernel':8}]}", NULL, NULL},
    {LINE "{'kind':'conv','out':6,'kernel':9}]}", "kernel",
     "a kernel reaching over 9 does not fit the padded input of 8"},
    {LINE "{'kind':'conv_transpose','out':6,'kernel':2}]}", NULL, NULL},
    {VECTOR "{'kind':'avgpool','kernel':1}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {WORDS "{'kind':'rope','heads':4,'rotary':0}]}", "rotary",
     "expected a whole number of at least 1, found 0"},
    {WORDS "{'kind':'rope','heads':4,'rotary':3}]}", NULL, NULL},
    {WORDS "{'kind':'rope','heads':4,'rotary':4}]}", "rotary",
     "expected at most the 3 channels of a head, found 4"},
    {WORDS "{'kind':'rope','heads':5}]}", "heads",
     "expected a sequence of 5 heads in all, found 12x8"},
    {IMAGE "{'kind':'rope','heads':4}]}", "heads",
     "expected a sequence of 4 heads in all, found 16x8x8"},
    {VECTOR "{'kind':'rope','heads':4}]}", "heads",
     "expected a sequence of 4 heads in all, found 12"},
    {IMAGE "{'kind':'relu','name':'a'},{'kind':'relu','name':'a'}]}", "layers[1].name",
     "the name 'a' is taken; names must differ"},
    {IMAGE "{'kind':'relu','name':'a'},{'kind':'relu','name':'a','repeat':2}]}", "layers[1].name",
     "the name 'a' is taken; names must differ"},
    {IMAGE "{'kind':'relu','name':'a.1'},{'kind':'relu','name':'a','repeat':2}]}", "layers[1].name",
     "the name 'a.1' is taken; names must differ"},
    {IMAGE "{'kind':'relu','name':'a.2'},{'kind':'relu','name':'a','repeat':2}]}", NULL, NULL},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','name':'r'}]}",
            "{'kind':'relu','name':'a'},{'block':'b','name':'a'}"),
     "layers[1].name", "the name 'a' is taken; names must differ"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','name':'r'}]}",
            "{'kind':'relu','name':'a'},{'block':'b','name':'a','repeat':2}"),
     "layers[1].name", "the name 'a' is taken; names must differ"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','name':'r'}]}",
            "{'kind':'relu','name':'a.r'},{'block':'b','name':'a'}"),
     "blocks[0].layers[0].name", "the name 'a.r' is taken; names must differ"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','name':'r'}]}",
            "{'block':'b','name':'a'},{'block':'b','name':'c'}"),
     NULL, NULL},
    {IMAGE "{'block':'b%d%s'}]}", "layers[0].block", "no block 'b%d%s' in this file"},
    {IMAGE "{'kind':'relu','from':'50%n'}]}", "layers[0].from",
     "expected an earlier layer or block of this list, found '50%n'"},
    {IMAGE "{'kind':'relu','name':''}]}", "layers[0].name", "a name must not be empty"},
    {IMAGE "{'name':'a'}]}", "layers[0]", "expected either a 'kind' or a 'block'"},
    {IMAGE "{'kind':'relu','block':'a'}]}", "layers[0]", "expected either a 'kind' or a 'block'"},
    {BLOCKS("{'name':'b','arguments':['n'],'layers':[{'kind':'conv','out':'n','kernel':1}]}",
            "{'block':'b','with':{'n':3}}"),
     NULL, NULL},
    {BLOCKS("{'name':'b','arguments':['n'],'layers':[{'kind':'conv','out':'n','kernel':1}]}",
            "{'block':'b'}"),
     "layers[0].with", "block 'b' needs the argument 'n'"},
    {BLOCKS("{'name':'b','arguments':['n'],'layers':[{'kind':'conv','out':'n','kernel':1}]}",
            "{'block':'b','with':{'m':3}}"),
     "layers[0].with", "block 'b' has no argument 'm'"},
    {BLOCKS("{'name':'b','layers':[{'block':'b'}]}", "{'block':'b'}"), "blocks[0].layers[0].block",
     "block 'b' uses itself"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu'}]}", "{'block':'b','out':3}"), "layers[0].block",
     "'out' belongs to a layer; arguments of a block belong in 'with'"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','from':'in2'}]}", "{'block':'b'}"),
     "blocks[0].layers[0].from", "the block has 1 input(s), there is no 'in2'"},
    {BLOCKS("{'name':'b','layers':[{'kind':'add','from':['in','in2']}]}",
            "{'block':'b','from':['input','input']}"),
     NULL, NULL},
    {IMAGE "{'kind':'conv','out':6,'kernel':8}]}", NULL, NULL},
    {IMAGE "{'kind':'conv','out':6,'kernel':9}]}", "kernel",
     "a kernel reaching over 9 does not fit the padded input of 8"},
    {IMAGE "{'kind':'conv','out':6,'kernel':9,'pad':1}]}", NULL, NULL},
    {IMAGE "{'kind':'conv','out':6,'kernel':5,'dilation':2}]}", "kernel",
     "a kernel reaching over 9 does not fit the padded input of 8"},
    {IMAGE "{'kind':'conv','out':6,'kernel':1,'groups':0}]}", "groups",
     "expected a whole number of at least 1, found 0"},
    {IMAGE "{'kind':'conv','out':6,'kernel':1,'groups':3}]}", "groups",
     "16 input channels do not divide into 3 groups"},
    {IMAGE "{'kind':'conv','out':6,'kernel':1,'groups':4}]}", "groups",
     "6 output channels do not divide into 4 groups"},
    {IMAGE "{'kind':'conv','out':6,'kernel':1,'groups':2}]}", NULL, NULL},
    {VECTOR "{'kind':'conv','out':6,'kernel':1}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {IMAGE "{'kind':'conv_transpose','out':6,'kernel':1,'pad':4}]}", "pad",
     "the output extent would be 0; expected at least 1"},
    {IMAGE "{'kind':'conv_transpose','out':6,'kernel':2,'pad':4}]}", NULL, NULL},
    {IMAGE "{'kind':'maxpool','kernel':9}]}", "kernel",
     "a window of 9 does not fit the padded input of 8"},
    {IMAGE "{'kind':'maxpool','kernel':8}]}", NULL, NULL},
    {VECTOR "{'kind':'maxpool','kernel':1}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {VECTOR "{'kind':'global_pool'}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {VECTOR "{'kind':'adaptive_pool','size':1}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {VECTOR "{'kind':'upsample','scale':2}]}", "layers[0]",
     "expected an input with spatial extents, found a vector"},
    {IMAGE "{'kind':'upsample','scale':2}]}", NULL, NULL},
    {IMAGE "{'kind':'dense','out':6}]}", "layers[0]",
     "expected a vector or a sequence, found 16x8x8; put a 'flatten' before it"},
    {VECTOR "{'kind':'dense','out':6}]}", NULL, NULL},
    {WORDS "{'kind':'attention','heads':0}]}", "heads",
     "expected a whole number of at least 1, found 0"},
    {WORDS "{'kind':'attention','heads':5}]}", "heads",
     "12 channels do not divide into queries, keys and values of 15 heads"},
    {WORDS "{'kind':'attention','heads':4}]}", NULL, NULL},
    {WORDS "{'kind':'attention','heads':3,'kv_heads':2}]}", "kv_heads",
     "3 heads do not share 2 key and value heads evenly"},
    {WORDS "{'kind':'attention','heads':2,'kv_heads':1}]}", NULL, NULL},
    {WORDS "{'kind':'dense','name':'k','from':'x','out':6},"
           "{'kind':'attention','from':['x','k','x'],'heads':4}]}",
     "layers[2]",
     "expected keys and values of one length and keys of 12 channels, found 6x8 and 12x8"},
    {WORDS "{'kind':'attention','from':['x','x','x'],'heads':5}]}", "heads",
     "12 channels do not divide into 5 heads"},
    {WORDS "{'kind':'attention','from':['x','x','x'],'heads':4}]}", NULL, NULL},
    {WORDS "{'kind':'dense','name':'v','from':'x','out':6},"
           "{'kind':'attention','from':['x','x','v'],'heads':4}]}",
     "kv_heads", "values of 6x8 do not divide into 4 heads beside keys of 3 channels a head"},
    {WORDS "{'kind':'dense','name':'v','from':'x','out':8},"
           "{'kind':'attention','from':['x','x','v'],'heads':4}]}",
     NULL, NULL},
    {WORDS "{'kind':'attention','from':['x','x'],'heads':2}]}", "kv_heads",
     "values of 12x8 do not divide into 2 heads beside keys of 6 channels a head"},
    {WORDS "{'kind':'moe','out':6,'experts':4,'topk':5}]}", "topk",
     "expected at most the number of experts (4), found 5"},
    {WORDS "{'kind':'moe','out':6,'experts':4,'topk':4}]}", NULL, NULL},
    {IMAGE "{'kind':'moe','out':6,'experts':4,'topk':1}]}", "layers[0]",
     "expected a vector or a sequence; put a 'flatten' before it"},
    {VECTOR "{'kind':'lstm','out':6}]}", "layers[0]", "expected a sequence"},
    {WORDS "{'kind':'lstm','out':6}]}", NULL, NULL},
    {WORDS "{'kind':'dense','name':'d','out':5},{'kind':'swiglu'}]}", "layers[2]",
     "expected an even number of channels (gate and value), found 5"},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':1},{'kind':'add','from':['a','input']}]}",
     "layers[1]", "inputs of an add must have one shape; input 1 is 6x8x8, input 2 is 16x8x8"},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':3},{'kind':'concat','from':['a','input']}]}",
     "layers[1]",
     "inputs of a concat may differ in channels only; input 1 is 6x6x6, input 2 is 16x8x8"},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':1},{'kind':'concat','from':['a','input']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':1},{'kind':'mul','from':['input','a']}]}",
     "layers[1]",
     "expected a second input of the shape or the channels of the first; found 16x8x8 and 6x8x8"},
    {IMAGE "{'kind':'conv','name':'a','out':16,'kernel':3},{'kind':'mul','from':['input','a']}]}",
     "layers[1]",
     "expected a second input of the shape or the channels of the first; found 16x8x8 and 16x6x6"},
    {IMAGE "{'kind':'conv','name':'a','out':15,'kernel':8},{'kind':'mul','from':['input','a']}]}",
     "layers[1]",
     "expected a second input of the shape or the channels of the first; found 16x8x8 and 15x1x1"},
    {IMAGE "{'kind':'conv','name':'a','out':1,'kernel':3},{'kind':'mul','from':['input','a']}]}",
     "layers[1]",
     "expected a second input of the shape or the channels of the first; found 16x8x8 and 1x6x6"},
    {IMAGE "{'kind':'conv','name':'a','out':16,'kernel':8},{'kind':'mul','from':['input','a']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'conv','name':'a','out':1,'kernel':1},{'kind':'mul','from':['input','a']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'conv','name':'a','out':16,'kernel':1},{'kind':'mul','from':['input','a']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':3},{'kind':'crop','from':['a','input']}]}",
     "layers[1]", "cannot crop 6x6x6 to the size of 16x8x8"},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':3},{'kind':'crop','from':['input','a']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'conv','name':'a','out':6,'kernel':[3,1]},"
           "{'kind':'conv','name':'b','out':6,'kernel':[1,3]},{'kind':'crop','from':['a','b']}]}",
     NULL, NULL},
    {IMAGE "{'kind':'flatten','name':'a'},{'kind':'crop','from':['input','a']}]}", "layers[1]",
     "cannot crop 16x8x8 to the size of 1024"},
    {IMAGE "{'kind':'split','out':17}]}", "out", "expected 1 to all 16 channels, found 17"},
    {IMAGE "{'kind':'split','out':16}]}", NULL, NULL},
    {WORDS "{'kind':'slice','tokens':9}]}", "tokens",
     "expected 1 to all tokens of a sequence, found 9 of 12x8"},
    {WORDS "{'kind':'slice','tokens':8}]}", NULL, NULL},
    {IMAGE "{'kind':'slice','tokens':1}]}", "tokens",
     "expected 1 to all tokens of a sequence, found 1 of 16x8x8"},
    {IMAGE "{'kind':'embedding','rows':9,'out':12}]}", "layers[0]",
     "expected a sequence of tokens or a vector of indices"},
    {VECTOR "{'kind':'embedding','rows':9,'out':12,'tokens':2}]}", "tokens",
     "only an embedding of a sequence has tokens"},
    {VECTOR "{'kind':'embedding','rows':9,'out':12}]}", NULL, NULL},
    {VECTOR "{'kind':'dense','name':'a','out':6},{'kind':'dot_interaction','from':['a','input']}]}",
     "layers[1]", "expected vectors of one length; input 1 is 6, input 2 is 12"},
    {VECTOR "{'kind':'dense','name':'a','out':12},"
            "{'kind':'dot_interaction','from':['a','input']}]}",
     NULL, NULL},
    {WORDS "{'kind':'dot_interaction','from':['x','x']}]}", "layers[1]",
     "expected vectors of one length; input 1 is 12x8, input 1 is 12x8"},
    {IMAGE "{'kind':'position','out':4}]}", "layers[0]", "a position has no 'out'"},
    {IMAGE "{'kind':'conv','kernel':4}]}", "layers[0]", "a conv needs 'out'"},
    {IMAGE "{'kind':'relu','with':{'a':1}}]}", "layers[0]",
     "'with' belongs to a block, not to a layer"},
    {BLOCKS("{'name':'b','layers':[{'kind':'add','from':['in','in3']}]}",
            "{'block':'b','from':['input','input']}"),
     "blocks[0].layers[0].from", "the block has 2 input(s), there is no 'in3'"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','from':'in1'}]}", "{'block':'b'}"),
     "blocks[0].layers[0].from", "expected an earlier layer or block of this list, found 'in1'"},
    {BLOCKS("{'name':'b','layers':[{'kind':'relu','from':'in2x'}]}", "{'block':'b'}"),
     "blocks[0].layers[0].from", "expected an earlier layer or block of this list, found 'in2x'"},
};

static void every_rule(void **state) {
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dl_arena arena = {0};
        struct dl_workload w;
        struct dl_err err;
        const enum dl_code code = load_text(rows[i].text, NULL, 0, &arena, &w, &err);
        const char *layers = strstr(rows[i].text, "'layers'");
        if (rows[i].message == NULL
                ? code != DL_OK
                : code != DL_ERR_INPUT || strstr(err.key, rows[i].key) == NULL ||
                      strcmp(err.message, rows[i].message) != 0) {
            print_message("%s\n  %d %s: %s\n", layers, (int)code, err.key, err.message);
            wrong++;
        }
        dl_arena_free(&arena);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
