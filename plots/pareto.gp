# pareto.gp - what does a shorter iteration cost in memory?
# Columns: 1 group, 2 strategy, 3 memory in bytes, 4 iteration in s, 5 place by memory among those
# that nothing beats in time and memory; 0: there only for its fewer devices, 6 devices, 7 the plan, 8 its name. Written to standard output.

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
# Names for points of the front that stand apart: with numbers of ranks, micro-batch and what is recomputed.
named_x = -1.
named_y = -1.
apart_x = 0.
apart_y = 0.
far_off(x, y) = (named_x < 0 || log10(x / named_x) > apart_x || abs(log10(y / named_y)) > apart_y)
name_at(place, x, y, plan) = (place > 0 && far_off(x, y) ? (named_x = x, named_y = y, plan) : '')
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
    apart_y = 1.9 * log10(STATS_max / STATS_min) * 22 / high
    stats data using (gib(3)) nooutput
    apart_x = 2 * log10(STATS_max / STATS_min) # names are long: one below another alone
    half = sqrt(STATS_max * STATS_min)
    left_half(x) = (best(1, x) == best(1, x) && x < half ? x : NaN)
    right_half(x) = (best(1, x) == best(1, x) && x >= half ? x : NaN) # below the front, where nothing is
    set rmargin 3
    plot M using (M[$1]):(T[$1]) with steps linecolor rgb grey dashtype 1 linewidth 1.2 title 'front', \
         for [g=1:groups] data index g-1 using (best(1, gib(3))):4 with points linetype g pointtype (g == 1 ? 7 : 2 * g) \
             pointsize (g == 1 ? 0.55 : 1.2) linewidth 1.2 title labels[g], \
         for [g=1:groups] data index g-1 using (best(0, gib(3))):4 with points linetype g pointtype 6 pointsize 0.9, \
         data using (left_half(gib(3))):4:(name_at($5, gib(3), $4, strcol(8))) with labels left offset 0.9,0.45 font ',11' notitle, \
         data using (right_half(gib(3))):4:(name_at($5, gib(3), $4, strcol(8))) with labels right offset -0.6,-0.7 font ',11' notitle
}
