# kernels.gp - how well are measured kernel times predicted? Ratios, as the errors are far smaller than the range of times.
# Columns: 1 group, 2 label, 3 measured (s), 4 predicted (s), 5 error (%), 6 device, 7 id. notes: texts of the key. To standard output.

set xlabel 'measured (µs)'
set ylabel 'predicted / measured'
set logscale xy
set key horizontal maxrows (narrow ? 9 : 3)
set offsets 0, 0, 0, 0
set samples 2
stats data using ($4 / $3) nooutput
far = (STATS_max > 1 / STATS_min ? STATS_max : 1 / STATS_min)
far = 1.08 * (far > 1.35 ? far : 1.35)
stats data using ($3 * 1e6) nooutput
set xrange [STATS_min / 1.3 : STATS_max * 1.3]
set yrange [1 / far : far]
if (text) {
    plot 1 with lines title 'equal', for [g=1:groups] data index g-1 using ($3*1e6):($4/$3) with points title notes[g]
} else {
    set format y '%g'
    unset mytics
    # the tics stay apart whatever the range
    fine = far < 2
    set ytics ()
    do for [i=1:20] {
        up = (fine ? 1 + 0.1 * i : i % 3 == 1 ? 2 * 10**((i - 1) / 3) : i % 3 == 2 ? 5 * 10**((i - 1) / 3) : 10**(i / 3))
        if (up < far) { set ytics add (sprintf('%g', up) up) }
        if (!fine && up < far) { set ytics add (sprintf('%g', 1. / up) 1. / up) }
        if (fine && i < 10 && 1 - 0.1 * i > 1 / far) { set ytics add (sprintf('%g', 1 - 0.1 * i) 1 - 0.1 * i) }
    }
    set ytics add ('1' 1)
    set xtics ()
    do for [e=-3:9] { set xtics add (10.**e); set xtics add (3 * 10.**e) }
    plot 1 with lines linecolor rgb black dashtype 1 linewidth 1.5 title 'equal', \
         1.35 with lines linecolor rgb '#555555' dashtype (8,6) linewidth 1.2 title 'a factor of 1.35', \
         1 / 1.35 with lines linecolor rgb '#555555' dashtype (8,6) linewidth 1.2, \
         for [g=1:groups] data index g-1 using ($3*1e6):($4/$3) with points linetype g pointtype (g == 1 ? 6 : g == 2 ? 4 : g == 3 ? 8 : 2 * g + 4) \
             pointsize 0.8 linewidth 1 title notes[g]
}
