# advise.gp - what does each change of the settings bring?
# Columns: 1 group (what the change does to the mathematics), 2 line, 3 change, 4 gain, 5 and 6 ends of its 80 % interval. Also set: number of changes.
# Written to standard output.

most = (text ? 36 : room_for(0.45, 13))
array names[64]
longest = 0
named(line, name) = (names[int(line)] = short(name, most), longest = (strlen(names[int(line)]) > longest ? strlen(names[int(line)]) : longest), 0)
stats data using (named($2, strcol(3))) nooutput
do for [l=1:changes] { set label l names[l] at graph 0, first l right offset -1,0 font (text ? '' : ',13') }
set xlabel 'gain in samples per second (%)'
set yrange [changes + 0.6 : 0.4]
unset ytics
set grid noytics
if (narrow) { set xtics 20 }
set key horizontal maxrows (narrow ? 4 : 1)
set arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb black linewidth 1
set lmargin (text ? longest + 2 : margin_for(longest, 13))
set offsets graph 0.03, graph 0.05, 0, 0
if (text) {
    plot for [g=1:groups] data index g-1 using (100 * $4):2 with points linetype g title labels[g]
} else {
    plot for [g=1:groups] data index g-1 using (100 * $4):2:(100 * $5):(100 * $6) \
             with xerrorbars linetype g dashtype 1 linewidth 1.6 pointsize 1.4 title labels[g]
}
