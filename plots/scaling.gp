# scaling.gp - what is a device's throughput worth as devices are added, and how near is the prediction?
# Columns: 1 group, 2 label, 3 devices, 4 measured, 5 predicted, 6 and 7 ends of its 80 % interval; of throughput (samples/s) also 8 ideal;
# nodes in 10, of shares in 9.
# Also set: measured (1: there are measured runs), share (1: 4 to 7 are fractions of the throughput per device of the smallest run).
# Up to three groups share one panel and have their names next to their lines; the interval of each stands at its end. More have a panel
# each, the others behind it in grey. Written to standard output.

y(c) = (share ? 100 * column(c) : column(c) / column(3))
flat(c) = (share ? 100 : column(8) / column(3))
nodes_at = (share ? 9 : 10)
what = (share ? 'scaling efficiency (% of linear)' : 'throughput per device (samples/s)')
set xlabel 'devices'
many = groups > 3

# The last value of each group, where its name goes; the last prediction with its interval; the extremes of all.
array E[groups]
array L[groups]
array last_x[groups]
array last_y[groups]
array last_low[groups]
array last_high[groups]
top = 0
low = 1e300
banded = 0
fewest = 1e9
most = 0
spread(a, b) = (top = b > top ? b : top, low = a < low ? a : low)
seen(g, x, v) = (v == v ? (E[g] = v, spread(v, v), fewest = x < fewest ? x : fewest, most = x > most ? x : most) : 0, 0)
ended(g, x, v, a, b) = (v == v ? (last_x[g] = x, last_y[g] = v, last_low[g] = a, last_high[g] = b) : 0, 0)
within(a, b) = (b == b ? (spread(a, b), banded = banded || b > 1.03 * a) : 0, 0)
do for [g=1:groups] {
    E[g] = 0
    last_x[g] = NaN
    last_y[g] = NaN
    last_low[g] = NaN
    last_high[g] = NaN
    stats data index g-1 using (seen(g, $3, y(5)), ended(g, $3, y(5), y(6), y(7))) nooutput
    stats data index g-1 using (seen(g, $3, y(4))) nooutput
    if (groups == 1 || many) { stats data index g-1 using (within(y(6), y(7))) nooutput } \
    else { unused = within(last_low[g], last_high[g]) }
}
if (share && top < 100) { top = 100 }
meaning = (measured ? 'points: measured; ' : '').'lines: predicted'.(!banded ? '' : groups > 1 && !many \
        ? '; bars at their ends: 80 % intervals' : '; band: 80 % interval')
bottom = (low > 0.6 * top ? 0.5 * top : 0)
round = 0.5 * 10**floor(log10(top))
bottom = (bottom > 0 ? round * floor(bottom / round) : 0)
set ylabel what
set yrange [bottom : 1.06 * top - 0.06 * bottom]
wide_x = (most > fewest ? 1. * most / fewest : 4.) # of the axis, as a factor
set xrange [fewest / wide_x**0.025 : most * wide_x**(groups > 1 && banded ? 0.07 : 0.025)]
set logscale x 2
unset mxtics

# Numbers of devices that occur are the tics; those too near to the one before stay without a number.
tics_from(apart) = (next = 0, apart)
tic_count = 0
array X[64]
known(x) = (tic_count > 0 ? (sum [i=1:tic_count] (X[i] == x ? 1 : 0)) > 0 : 0)
keep(x) = (x == x && tic_count < 64 && !known(x) ? (tic_count = tic_count + 1, X[tic_count] = x) : 0, 0)
stats data using (keep($3)) nooutput
do for [a=1:tic_count] { do for [b=a+1:tic_count] { if (X[b] < X[a]) { swap = X[a]; X[a] = X[b]; X[b] = swap } } }

# Where a node ends: between the greatest number of devices on one node and the smallest on several, if no group contradicts.
inside = 0
beyond = 1e9
border(x, n) = (n == n ? (n > 1 ? (beyond = x < beyond ? x : beyond) : (inside = x > inside ? x : inside)) : 0, 0)
stats data using (border($3, column(nodes_at))) nooutput
edge = (inside > 0 && beyond < 1e9 && inside < beyond ? sqrt(1. * inside * beyond) : 0)

if (text) {
    set key maxrows groups + 1
    plot (share ? 100 : NaN) with dots linetype -1 title (share ? '100 %: linear' : ''), \
         for [g=1:groups] data index g-1 using 3:(y(5)) with lines linetype g title (measured ? '' : labels[g]), \
         for [g=1:groups] data index g-1 using 3:(y(4)) with points linetype g, \
         for [g=1:(measured ? groups : 0)] NaN with linespoints linetype g \
             title labels[g].(groups == 1 ? ' (letter: measured, line: predicted)' : '')
}
if (!text) {
    apart = wide_x**(many ? 0.2 : 0.055)
    before = 0
    set xtics ()
    do for [i=1:tic_count] {
        if (X[i] >= before * apart) { set xtics add (sprintf('%d', X[i]) X[i]); before = X[i] } else { set xtics add ('' X[i]) }
    }
}
if (!text && !many) {
    unset key # names stand next to the lines
    longest = 0
    gap = (bottom > 0 || narrow ? 0.065 : 0.06) * (1.06 * top - 1.06 * bottom)
    array names[groups]
    do for [g=1:groups] {
        names[g] = labels[g].(measured ? '' : sprintf(': %.3g', E[g]))
        L[g] = E[g]
        longest = strlen(names[g]) > longest ? strlen(names[g]) : longest
    }
    do for [i=1:60] { do for [a=1:groups-1] { do for [b=a+1:groups] {
        up = (E[a] > E[b] || (E[a] == E[b] && a < b) ? a : b)
        down = a + b - up
        near = gap - (L[up] - L[down])
        if (near > 0) { L[up] = L[up] + near / 2; L[down] = L[down] - near / 2 }
    } } }
    do for [g=1:groups] { set label names[g] at graph 1, first L[g] left offset 0.6,0 textcolor linetype g }
    set rmargin margin_for(longest, own) + 1.5
    if (bottom > 0) { set ytics add (bottom) }
    start(x) = sprintf('%d device%s', x, x == 1 ? '' : 's').(groups > 1 ? ', '.labels[1] : '')
    heading = heading."\n".wrap(meaning.(bottom > 0 ? sprintf('; axis from %g', bottom) : '').'; grey dashes: ideal scaling from '.(share ? 'the smallest run of each' : start(fewest)), heading_room)
    eval centred
    set tmargin 3 + 1.02 * count_lines(heading)
    if (edge > 0) {
        set arrow from edge, graph 0 to edge, graph 1.05 nohead linecolor rgb grey dashtype (2,4) linewidth 1.2
        set label 'one node' at edge, graph 1.03 right offset -0.7,0 font ',13' textcolor rgb 0x555555
        set label 'several nodes' at edge, graph 1.03 left offset 0.7,0 font ',13' textcolor rgb 0x555555
    }
    at_end(g) = most * wide_x**(0.02 * g)
    plot data index 0 using 3:(banded && groups == 1 ? y(6) : NaN):(banded && groups == 1 ? y(7) : NaN) with filledcurves linetype 1 \
             fillstyle transparent solid band_opacity noborder, \
         data index 0 using 3:(flat(8)) with lines linecolor rgb grey dashtype (8,6) linewidth 1.2, \
         for [g=1:groups] data index g-1 using 3:(y(5)) with lines linetype g, \
         for [g=1:groups] data index g-1 using 3:(y(4)) with points linetype g pointsize 1.2, \
         for [g=1:(most > fewest || measured ? 0 : groups)] data index g-1 using 3:(y(5)) with points linetype g pointsize 1, \
         for [g=1:(banded && groups > 1 ? groups : 0)] '+' every ::0::0 using (at_end(g)):(last_low[g]):(0):(last_high[g] - last_low[g]) \
             with vectors heads size graph 0.006,90 linetype g dashtype 1 linewidth 1.4
}
if (!text && many) {
    unset key
    unset label 90
    across = (groups > 4 && !narrow ? 3 : 2)
    down = (groups + across - 1) / across
    west = 0.1 + (narrow ? 0.03 : 0)
    south = 0.055 + (narrow ? 0.02 : 0)
    panel_w = (0.98 - west) / across
    heading = heading."\n".wrap(meaning.(share ? '; dashed: linear' : '').(edge > 0 ? '; dotted: end of a node' : '').'; thin grey: the others', heading_room)
    north = 1 - (22. + 21 * count_lines(heading)) / high
    panel_h = (north - south) / down
    unset title
    set multiplot title heading font heading_font
    unset xlabel
    unset ylabel
    set xtics font ',12' offset 0,0.3
    set ytics font ',12'
    set label 100 what at screen 0.015,0.5 center rotate
    set label 101 'devices' at screen 0.5,0.028 center
    panel_size = (narrow ? 10 : 14)
    set label 103 at graph 0,1 left offset 0,0.7 font sprintf(',%d', panel_size)
    if (edge > 0) { set arrow from edge, graph 0 to edge, graph 1 nohead linecolor rgb grey dashtype (2,4) linewidth 1 }
    do for [g=1:groups] {
        column_of = (g - 1) % across
        row_of = (g - 1) / across
        set lmargin at screen west + column_of * panel_w
        set rmargin at screen west + (column_of + 0.88) * panel_w
        set tmargin at screen north - row_of * panel_h - 0.17 * panel_h
        set bmargin at screen north - (row_of + 1) * panel_h + 0.055
        if (g > 1) { unset label 100; unset label 101 }
        set format y (column_of == 0 ? '%.10g' : '')
        # the value at the end of the line, above it or, near the top, below
        over = last_y[g] < 0.75 * top
        set label 103 short(labels[g], room_for(panel_w, panel_size)).(last_x[g] < most ? sprintf(' (to %d)', last_x[g]) : '')
        set label 104 sprintf('%.3g', last_y[g]) at last_x[g], (over ? last_high[g] == last_high[g] ? last_high[g] : last_y[g] : \
                last_low[g] == last_low[g] ? last_low[g] : last_y[g]) right offset (last_x[g] < most ? 4.5 : 0),(over ? 0.7 : -0.7) font ',13' front
        plot for [o=1:groups] data index o-1 using 3:(o == g ? NaN : y(5)) with lines linecolor rgb '#C4C4C4' linewidth 0.8 dashtype 1, \
             data index g-1 using 3:(y(6)):(y(7)) with filledcurves linetype g fillstyle transparent solid 0.22 noborder, \
             (share ? 100 : NaN) with lines linecolor rgb grey dashtype (8,6) linewidth 1.4, \
             data index g-1 using 3:(y(5)) with lines linetype g dashtype 1 linewidth 3.5, \
             for [i=1:(most > fewest ? 0 : 1)] data index g-1 using 3:(y(5)):(y(6)):(y(7)) with yerrorbars linetype g pointsize 1, \
             data index g-1 using 3:(y(4)) with points linetype g pointsize 1.1
    }
    unset multiplot
}
