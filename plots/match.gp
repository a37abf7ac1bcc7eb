# match.gp - which architecture for which network, or which nodes for a job: samples/s on the left, samples/J on the right, by system or choice.
# Columns: 1 group (network, or kinds of nodes), 2 line, 3 system or choice, 4 to 6 samples/s with its interval, 7 to 9 samples/J with its interval. Also set: number of systems.
# Written to standard output.

array names[64]
longest = 0
named(line, name) = (names[int(line + 0.5)] = name, longest = (strlen(name) > longest ? strlen(name) : longest), 0)
stats data using (named($2, strcol(3))) nooutput
stats data using 5 nooutput
least = STATS_min
stats data using 6 nooutput
most = STATS_max
set logscale x
set offsets graph 0.02, graph 0.02, 0, 0
set yrange [systems + 0.6 : 0.4]
unset ytics
set grid noytics
set format x '%g'
if (text) {
    do for [s=1:systems] { set label s names[s] at graph 0, first s right offset -1,0 }
    set lmargin longest + 2
    set xlabel 'samples/s'
    plot for [g=1:groups] data index g-1 using 4:2 with points linetype g title labels[g]
} else {
    unset label 90
    set multiplot layout 1,2 title heading noenhanced font heading_font
    do for [s=1:systems] { set label s names[s] at graph 0, first s right offset -1,0 font ',13' }
    # both panels share what the names leave
    left = (longest * letter_px * 13 / own + 30) / wide
    middle = left + 0.54 * (0.95 - left)
    set lmargin at screen left
    set rmargin at screen middle
    # a longer list makes the figure higher, not its margins; the key has the columns that fit under the panel
    widest = 0
    do for [g=1:groups] { widest = (strlen(labels[g]) > widest ? strlen(labels[g]) : widest) }
    fitting = int((middle - left) * wide / (9.0 * widest + 70))
    rows = (fitting < 1 ? groups : int((groups + fitting - 1) / fitting))
    set tmargin at screen 1 - (35.0 + 20 * count_lines(heading)) / high
    set bmargin at screen (95.0 + 24 * rows) / high
    # numbers at 1, 2 and 5 where powers of ten are too far apart
    if (most < (narrow ? 8 : 50) * least) { set for [d=-1:7] xtics add (sprintf('%g', 10.0**d) 10.0**d, sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d) }
    set xlabel 'samples/s'
    set key at screen 0.5, screen 0.02 center bottom horizontal maxrows 1
    plot for [g=1:groups] data index g-1 using 4:2:5:6 with xerrorbars linetype g dashtype 1 pointsize 1.3 title labels[g]
    do for [s=1:systems] { unset label s }
    set lmargin at screen middle + 0.03
    set rmargin at screen 0.98
    set xlabel 'samples/J'
    if (!narrow) { set for [d=-4:3] xtics add (sprintf('%g', 10.0**d) 10.0**d, sprintf('%g', 2 * 10.0**d) 2 * 10.0**d, sprintf('%g', 5 * 10.0**d) 5 * 10.0**d) }
    unset key
    plot for [g=1:groups] data index g-1 using 7:2:8:9 with xerrorbars linetype g dashtype 1 pointsize 1.3
    unset multiplot
}
