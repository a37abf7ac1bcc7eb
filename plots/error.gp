# error.gp - how far are predictions from measurements, and to which side?
# Columns: 1 group, 2 label, 3 offset from the middle of the group, 4 error, 5 its mean in the group, 6 first quartile, 7 median,
# 8 third quartile; 4 to 8 in %: 100 (predicted - measured) / measured of the time, positive: predicted too slow. Groups from top to
# bottom, best first. Written to standard output.

set xlabel (narrow ? 'error of the time (%; right: too slow)' : 'error of the predicted time (%; right: predicted too slow)')
stats data using 4 nooutput
far = (STATS_max > 0 ? STATS_max : 0) + 0.02 * (STATS_max - STATS_min)
near = (STATS_min < 0 ? STATS_min : 0) - 0.02 * (STATS_max - STATS_min)
set yrange [groups + 0.7 : 0.3]
unset ytics
longest = 0
many = text || groups > 12 # no room for second lines
size = (groups > 12 ? 11 : 13)
small = sprintf(',%d', size)
most = (text ? 48 : room_for(narrow ? 0.33 : 0.42, size))
do for [g=1:groups] {
    name = short(labels[g], most)
    longest = strlen(name) > longest ? strlen(name) : longest
    longest = !many && strlen(notes[g]) > longest ? strlen(notes[g]) : longest
    if (many) { set label g name at graph 0, first g right offset -1,0 font small } \
    else { set label g name."\n".notes[g] at graph 0, first g right offset -1,0.4 font ',13' }
}
set lmargin (text ? longest + 2 : margin_for(longest, size))
set grid noytics
set key horizontal maxrows (narrow ? 6 : 2)
set arrow from 0, graph 0 to 0, graph 1 nohead back linecolor rgb (text ? black : 0x777777) linewidth 1
set offsets graph 0.02, graph 0.02, 0, 0
half = 0.38

if (text) {
    plot data using 4:1 with points pointtype 1 title 'one run', \
         for [g=1:groups] data index g-1 using 5:1 every ::0::0 with points pointtype 13 title (g == 1 ? 'mean' : '')
} else {
    set tmargin 3 + 1.02 * count_lines(heading)
    set rmargin 13
    key_font = (format eq 'png' ? ',11' : ',13')
    set key font key_font
    set grid xtics linecolor rgb '#BBBBBB'
    # numbers next to the rows
    set label 200 'median' at graph 1, graph 1 right offset 6.5,0.8 font small
    set label 201 'mean' at graph 1, graph 1 right offset 12,0.8 font small
    written(v) = (abs(v) < 0.5 ? '0' : sprintf('%s%.0f', v < 0 ? '−' : '+', abs(v)))
    set xrange [near : far]
    if (narrow) { set xtics far - near > 60 ? 40 : far - near > 30 ? 20 : 10 }
    plot data using 4:($1+$3) with points linecolor rgb 0x600072B2 pointtype 6 pointsize 0.6 title 'a run', \
         for [g=1:groups] data index g-1 using 7:1:6:8:($1-half):($1+half) every ::0::0 with boxxyerror \
             fillstyle empty border linecolor rgb black linecolor rgb black dashtype 1 linewidth 1 title (g == 1 ? 'middle 50 %' : ''), \
         for [g=1:groups] data index g-1 using 7:($1-1.25*half):(0):(2.5*half) every ::0::0 with vectors nohead linecolor rgb 'white' \
             dashtype 1 linewidth (format eq 'png' ? 3.6 : 5), \
         for [g=1:groups] data index g-1 using 7:($1-1.2*half):(0):(2.4*half) every ::0::0 with vectors nohead linecolor rgb '#D55E00' \
             dashtype 1 linewidth (format eq 'png' ? 1.8 : 2.4) title (g == 1 ? 'median' : ''), \
         for [g=1:groups] data index g-1 using (far):1:(written($7)) every ::0::0 with labels right offset 6.5,0 font small, \
         for [g=1:groups] data index g-1 using (far):1:(written($5)) every ::0::0 with labels right offset 12,0 font small
}
