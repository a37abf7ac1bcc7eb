# pareto.gp - what does a shorter iteration cost in memory?
# Columns: 1 group, 2 strategy, 3 memory in bytes, 4 iteration in s, 5 place by memory among those
# that nothing beats in time and memory; 0: there only for its fewer devices, 6 devices, 7 the plan. Written to standard output.

gib(c) = column(c) / 1073741824.
best(k, v) = ((column(5) > 0) == k ? v : NaN)
# the front as arrays: steps over all groups, from less memory to more
stats data using 5 nooutput
array M[int(STATS_max)]
array T[int(STATS_max)]
keep(place, memory, time) = (place > 0 ? (M[int(place)] = memory, T[int(place)] = time) : 0, place)
stats data using (keep($5, gib(3), $4)) nooutput
set logscale x 2
set logscale y 10
set xlabel 'memory per device (GiB)'
set ylabel 'time per iteration (s)'
set format y '%g'
set format x '%g'
set key horizontal maxrows (narrow ? 8 : 2) samplen 1.5
set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05
if (text) {
    plot for [g=1:groups] data index g-1 using (gib(3)):4 with points linetype g title labels[g]
} else {
    # numbers at 1, 2 and 5 where the range is short enough for them, else at powers of ten
    stats data using 4 nooutput
    decades = log10(STATS_max / STATS_min)
    set ytics ()
    do for [e=floor(log10(STATS_min)) - 1:ceil(log10(STATS_max))] {
        set ytics add (sprintf('%g', 10.**e) 10.**e)
        if (decades < 4) { set ytics add (sprintf('%g', 2 * 10.**e) 2 * 10.**e); set ytics add (sprintf('%g', 5 * 10.**e) 5 * 10.**e) }
    }
    plot M using (M[$1]):(T[$1]) with steps linecolor rgb grey dashtype 1 linewidth 1.2 title 'front', \
         for [g=1:groups] data index g-1 using (best(1, gib(3))):4 with points linetype g pointtype (g == 1 ? 7 : 2 * g) \
             pointsize (g == 1 ? 0.55 : 1.2) linewidth 1.2 title labels[g], \
         for [g=1:groups] data index g-1 using (best(0, gib(3))):4 with points linetype g pointtype 6 pointsize 0.9
}
