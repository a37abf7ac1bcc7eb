# repeats.gp - how far do repeats of a configuration scatter, and how narrow is the interval of their median?
# Columns: 1 group (1 a run, 2 the median), 2 line, 3 configuration, 4 to 6 value and interval, 7 unit, 8 to 10 the same as fractions from the median. Also set:
# number of configurations. Written to standard output.

most = (text ? 36 : 44)
short(name) = (strlen(name) > most ? name[1:most-1].'...' : name)
array names[64]
longest = 0
named(line, name) = (names[int(line)] = short(name), longest = (strlen(short(name)) > longest ? strlen(short(name)) : longest), 0)
stats data using (named($2, strcol(3))) nooutput
do for [l=1:configurations] { set label l names[l] at graph 0, first l right offset -1,0 font (text ? '' : ',13') }
set xlabel 'from the median (%)'
set yrange [configurations + 0.6 : 0.4]
unset ytics
set grid noytics
set lmargin (text ? longest + 2 : margin_for(longest, 13))
set offsets graph 0.03, graph 0.05, 0, 0
set arrow from 0, graph 0 to 0, graph 1 nohead linecolor rgb black linewidth 1
if (text) {
    plot data index 0 using (100 * $8):2 with points linetype 1 title labels[1], \
         data index 1 using (100 * $10):2 with points linetype 2 notitle, \
         data index 1 using (100 * $9):2 with points linetype 2 title labels[2]
} else {
    # runs above the line, the interval below it
    plot data index 0 using (100 * $8):($2 - 0.12) with points linetype 1 pointtype 6 pointsize 0.8 title labels[1], \
         data index 1 using (100 * $8):($2 + 0.16):(100 * $9):(100 * $10) with xerrorbars linetype 2 dashtype 1 linewidth 1.6 pointsize 1.2 title labels[2]
}
