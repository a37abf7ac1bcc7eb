/* page_data.c - embeds the files of serve/page/ by the assembler. */
#include "serve/page_data.h"

#define PART(file) ".incbin \"serve/page/" file "\"\n"
#define EMBED(name, parts)                                                                         \
    __asm__(".section .rodata\n.balign 8\n.global dl_page_" name "\ndl_page_" name ":\n" parts     \
            ".global dl_page_" name "_end\ndl_page_" name "_end:\n.byte 0\n.previous\n");          \
    _Static_assert(1, "")

EMBED("html", PART("index.html"));
/* one program, in the order of its parts */
EMBED("js", PART("base.js") PART("setup.js") PART("figures.js") PART("answer.js") PART("plans.js")
                PART("files.js") PART("wizard.js") PART("page.js"));
EMBED("css", PART("page.css"));
extern const char dl_page_html[], dl_page_html_end[], dl_page_js[], dl_page_js_end[], dl_page_css[],
    dl_page_css_end[];

const struct dl_page_file dl_page_files[] = {
    {"/", "text/html; charset=utf-8", dl_page_html, dl_page_html_end},
    {"/page.js", "text/javascript; charset=utf-8", dl_page_js, dl_page_js_end},
    {"/page.css", "text/css; charset=utf-8", dl_page_css, dl_page_css_end},
    {.path = NULL},
};
