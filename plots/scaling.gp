# scaling.gp - what is a device's throughput worth as devices are added, and how near is the prediction?
# Columns: 1 group, 2 label, 3 devices, 4 measured, 5 predicted, 6 and 7 ends of its 80 % interval; of throughput (samples/s) also 8 ideal.
# Also set: measured (1: there are measured runs), share (1: 4 to 7 are fractions of the throughput per device of the smallest run).
# Up to three groups share one panel and have their names next to their lines; the band is that of the first. More have a panel each,
# the others behind it in grey. Written to standard output.

y(c) = (share ? 100 * column(c) : column(c) / column(3))
flat(c) = (share ? 100 : column(8) / column(3))
set xlabel 'devices'
set ylabel (share ? 'scaling efficiency (% of linear)' : 'throughput per device (samples/s)')
many = groups > 3

# The last value of each group, where its name goes, and the greatest of all.
array E[groups]
array L[groups]
top = 0
low = 1e300
banded = 0
fewest = 1e9
most = 0
seen(g, x, v) = (v == v ? (E[g] = v, top = v > top ? v : top, low = v < low ? v : low, fewest = x < fewest ? x : fewest, most = x > most ? x : most) : 0, 0)
do for [g=1:groups] {
    E[g] = 0
    stats data index g-1 using (seen(g, $3, y(5))) nooutput
    stats data index g-1 using (seen(g, $3, y(4))) nooutput
    if (g == 1 || many) { stats data index g-1 using (y(7) == y(7) ? (top = y(7) > top ? y(7) : top, low = y(6) < low ? y(6) : low, banded = banded || y(7) > 1.03 * y(6), 0) : 0) nooutput }
}
if (share && top < 100) { top = 100 }
meaning = (measured ? 'points: measured; ' : '').'lines: predicted'.(banded ? '; band: 80 % interval' : '')
bottom = (low > 0.6 * top ? 0.5 * top : 0)
set yrange [bottom : 1.06 * top - 0.06 * bottom]
set xrange [fewest / (most > fewest ? 1.05 : 2) : most * (most > fewest ? 1.05 : 2)]
set logscale x 2

if (text) {
    set key maxrows groups + 1
    plot (share ? 100 : NaN) with dots linetype -1 title (share ? '100 %: linear' : ''), \
         for [g=1:groups] data index g-1 using 3:(y(5)) with lines linetype g title (measured ? '' : labels[g]), \
         for [g=1:groups] data index g-1 using 3:(y(4)) with points linetype g, \
         for [g=1:(measured ? groups : 0)] NaN with linespoints linetype g \
             title labels[g].(groups == 1 ? ' (letter: measured, line: predicted)' : '')
}
if (!text && !many) {
    unset key
    longest = 0
    gap = 0.06 * (1.06 * top - 1.06 * bottom)
    do for [g=1:groups] { L[g] = E[g]; longest = strlen(labels[g]) > longest ? strlen(labels[g]) : longest }
    do for [i=1:60] { do for [a=1:groups-1] { do for [b=a+1:groups] {
        up = (E[a] > E[b] || (E[a] == E[b] && a < b) ? a : b)
        down = a + b - up
        near = gap - (L[up] - L[down])
        if (near > 0) { L[up] = L[up] + near / 2; L[down] = L[down] - near / 2 }
    } } }
    do for [g=1:groups] { set label labels[g] at graph 1, first L[g] left offset 0.6,0 textcolor linetype g }
    set rmargin 0.9 * longest + 2
    who = (groups > 1 && banded ? ', '.labels[1] : '')
    unset title
    set tmargin 5.5
    set label 90 heading."\n".meaning.who.'; dashed: linear' at screen 0.5,0.95 center
    plot data index 0 using 3:(banded ? y(6) : NaN):(banded ? y(7) : NaN) with filledcurves linetype 1 fillstyle transparent solid band_opacity noborder, \
         data index 0 using 3:(flat(8)) with lines linecolor rgb grey dashtype (8,6) linewidth 1.4, \
         for [g=1:groups] data index g-1 using 3:(y(5)) with lines linetype g, \
         for [g=1:groups] data index g-1 using 3:(y(4)) with points linetype g pointsize 1.3
}
if (!text && many) {
    unset key
    across = (groups > 4 && !narrow ? 3 : 2)
    down = (groups + across - 1) / across
    west = 0.1 + (narrow ? 0.03 : 0)
    south = 0.10 + (narrow ? 0.02 : 0)
    panel_w = (0.98 - west) / across
    panel_h = (0.86 - south) / down
    unset title
    set multiplot title heading."\n".meaning.(share ? '; dashed: linear' : '').'; grey: the others'
    unset xlabel
    unset ylabel
    set xtics font ',12'
    set ytics font ',12'
    set logscale x 4
    set label 100 (share ? 'scaling efficiency (% of linear)' : 'throughput per device (samples/s)') at screen 0.015,0.5 center rotate
    set label 101 'devices' at screen 0.5,0.025 center
    set title offset 0,-0.8
    do for [g=1:groups] {
        column_of = (g - 1) % across
        row_of = (g - 1) / across
        set lmargin at screen west + column_of * panel_w
        set rmargin at screen west + (column_of + 0.88) * panel_w
        set tmargin at screen 0.86 - row_of * panel_h - 0.16 * panel_h
        set bmargin at screen 0.86 - (row_of + 1) * panel_h + 0.06
        if (g > 1) { unset label 100; unset label 101 }
        set format y (column_of == 0 ? '%.10g' : '')
        set title labels[g]
        plot for [o=1:groups] data index o-1 using 3:(o == g ? NaN : y(5)) with lines linecolor rgb '#C4C4C4' linewidth 1.2 dashtype 1, \
             data index g-1 using 3:(y(6)):(y(7)) with filledcurves linetype g fillstyle transparent solid 0.22 noborder, \
             (share ? 100 : NaN) with lines linecolor rgb grey dashtype (8,6) linewidth 1.4, \
             data index g-1 using 3:(y(5)) with lines linetype g dashtype 1, \
             data index g-1 using 3:(y(4)) with points linetype g pointsize 1.1
    }
    unset multiplot
}
