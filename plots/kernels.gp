# kernels.gp - predicted against measured kernel times.
# Columns: 1 group, 2 label, 3 measured (s), 4 predicted (s), 5 error (%), 6 device, 7 id. notes: texts of the key. To standard output.

set xlabel 'measured (µs)'
set ylabel 'predicted (µs)'
set logscale xy
set key horizontal maxrows (narrow ? 9 : 3)
set offsets 0, 0, 0, 0
set samples 2
if (text) {
    plot x with lines title 'equal', for [g=1:groups] data index g-1 using ($3*1e6):($4*1e6) with points title notes[g]
} else {
    stats data using ($3*1e6) nooutput
    set xrange [STATS_min / 1.3 : STATS_max * 1.3]
    plot x with lines linecolor rgb black dashtype 1 linewidth 1.5 title 'equal', \
         1.35 * x with lines linecolor rgb '#8C8C8C' dashtype (4,4) linewidth 1 title '35 % off', \
         x / 1.35 with lines linecolor rgb '#8C8C8C' dashtype (4,4) linewidth 1, \
         for [g=1:groups] data index g-1 using ($3*1e6):($4*1e6) with points linetype g pointsize 1 title notes[g]
}
