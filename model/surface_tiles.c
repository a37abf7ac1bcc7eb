/* surface_tiles.c - see the header. */
#include "model/surface_tiles.h"

#include "model/surface_math.h"

const struct dl_tile dl_tile_large = {128, 128}, dl_tile_usual = {128, 64}, dl_tile_narrow = {128, 32};

double dl_tile_excess(double m, double n, double count, double units, struct dl_tile tile) {
    const double points = m * n * count, tiles = dl_whole_up(m / tile.m) * dl_whole_up(n / tile.n) * count;
    if (!(points > 0) || !(units > 0)) return 1;
    return dl_whole_up(tiles / units) * units * tile.m * tile.n / points;
}

double dl_tile_steps(double excess, double waves) {
    return waves > 0 ? excess * waves / (waves + 1) : 1;
}
