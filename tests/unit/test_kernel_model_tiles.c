/* Whole tiles and whole waves, worked by hand. F-KERNEL-TILES. */
#include "model/machine/kernel_model_tiles.h"
#include "tests/check.h"

/* 3136 x 256 in tiles of 128 x 64: 25 x 4 = 100 tiles, on 80 units 2 waves: 160 x 8192 / 802816
 * = 1.632653. With 192 columns 75 tiles, one wave: 80 x 8192 / 602112 = 1.088435. */
static void excess(void **state) {
    check_close(dl_tile_excess(3136, 256, 1, 80, 1.0 / 80, dl_tile_usual), 160 * 8192.0 / 802816,
                1e-12);
    check_close(dl_tile_excess(3136, 192, 1, 80, 1.0 / 80, dl_tile_usual), 80 * 8192.0 / 602112,
                1e-12);
    /* 10 x 8 tiles: nothing is lost */
    check_close(dl_tile_excess(1280, 1024, 1, 80, 1.0 / 80, dl_tile_large), 1, 1e-12);
    check_close(dl_tile_excess(1, 1, 1, 80, 1.0 / 80, dl_tile_large), 80 * 16384, 1e-12);
    for (double units = 1; units < 5000; units++) /* exactly two waves of any number of units */
        check_close(dl_tile_excess(128 * units, 128, 1, units, 1 / units, dl_tile_usual), 1, 1e-12);
    check_close(dl_tile_excess(0, 256, 1, 80, 1.0 / 80, dl_tile_usual), 1, 0);
}

/* 100 tiles' worth is 802816 / 8192 / 80 = 1.225 waves; the smooth form counts 2.225, whole waves
 * are 2. */
static void steps(void **state) {
    check_close(dl_tile_steps(dl_tile_excess(3136, 256, 1, 80, 1.0 / 80, dl_tile_usual),
                              802816 / 8192.0 / 80),
                2 / 2.225, 1e-12);
    check_close(dl_tile_steps(1, 0), 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(excess), cmocka_unit_test(steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
