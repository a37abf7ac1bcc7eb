# style.gp - what all figures share: terminal, fonts, colours, line types. Loaded before the figure's own script.
#
# Set by the program (gnuplot -e): data (name of the data block), format (png, svg, pdf, eps or terminal), columns and lines (size of
# the text terminal), wide and high (of the others, in pixels), color (1: colours in the text terminal), heading_lines (array), groups (how many), labels and notes (arrays of
# their names and of second lines under them).
# Colours: Okabe and Ito, safe for colour-blind readers; line types and point shapes distinguish groups in grey.

set encoding utf8
set datafile separator comma
set datafile commentschars ''
set datafile missing 'NaN'

text = format eq 'terminal'
if (format eq 'png') { set terminal pngcairo size 2*wide,2*high font 'sans,13' fontscale 2 pointscale 2 noenhanced linewidth 3 }
if (format eq 'svg') { set terminal svg size wide,high font 'sans-serif,15' noenhanced background 'white' linewidth 1.5 }
cm_wide = 24. * wide / 800
cm_high = 24. * high / 800
if (format eq 'eps') { set terminal epscairo size cm_wide cm,cm_high cm font 'sans,14' noenhanced linewidth 1.5 }
if (format eq 'pdf') { set terminal pdfcairo size cm_wide cm,cm_high cm font 'sans,14' noenhanced linewidth 1.5 }
if (text && color) { set terminal dumb size columns,lines noenhanced ansi }
if (text && !color) { set terminal dumb size columns,lines noenhanced mono }
set termoption noenhanced

# blue, vermillion, green, purple, orange, sky blue; shapes: filled circle, square, triangle, diamond, open circle, open square
set linetype 1 linecolor rgb '#0072B2' pointtype 7 dashtype 1 linewidth 2
set linetype 2 linecolor rgb '#D55E00' pointtype 5 dashtype (12,4) linewidth 2
set linetype 3 linecolor rgb '#009E73' pointtype 9 dashtype (3,3) linewidth 2
set linetype 4 linecolor rgb '#CC79A7' pointtype 13 dashtype (12,4,3,4) linewidth 2
set linetype 5 linecolor rgb '#E69F00' pointtype 6 dashtype (18,4) linewidth 2
set linetype 6 linecolor rgb '#56B4E9' pointtype 4 dashtype (6,3,2,3,2,3) linewidth 2
# more than six: darker colours
set linetype 7 linecolor rgb '#000000' pointtype 8 dashtype 1 linewidth 1.5
set linetype 8 linecolor rgb '#7A3B00' pointtype 10 dashtype (12,4) linewidth 1.5
set linetype 9 linecolor rgb '#5B2C6F' pointtype 12 dashtype (3,3) linewidth 1.5
set linetype 10 linecolor rgb '#00494D' pointtype 11 dashtype (12,4,3,4) linewidth 1.5
set linetype 11 linecolor rgb '#8C8C8C' pointtype 1 dashtype 1 linewidth 1.5
set linetype 12 linecolor rgb '#A8324A' pointtype 2 dashtype (18,4) linewidth 1.5
set linetype 13 linecolor rgb '#3F6B1F' pointtype 3 dashtype (6,3,2,3,2,3) linewidth 1.5
set linetype 14 linecolor rgb '#24388C' pointtype 14 dashtype (12,4) linewidth 1.5
band_opacity = groups > 3 ? 0.09 : 0.18
grey = 0x8C8C8C
black = 0x000000

# Sizes of letters: own, and how wide one of them is in pixels, on average.
own = (format eq 'svg' ? 15 : format eq 'png' ? 13 : 14)
letter_px = (format eq 'svg' ? 8.2 : format eq 'png' ? 9.2 : 8.7)
# How many letters of a size fit into a part of the picture's width; a name of as many at most; the margin for as many.
room_for(part, size) = floor(part * wide / letter_px * own / size)
short(name, most) = (strlen(name) > most ? name[1:most - 1].'…' : name)
margin_for(letters, size) = 0.92 * letters * size / own + 2.5

# The heading, in 0.92 of the usual size; what a script adds to it is broken at blanks, too, where the picture ends.
line = ''
broken = ''
put(w, most) = (line ne '' && strlen(line) + strlen(w) >= most ? (broken = broken.line."\n", line = w) : (line = line.(line eq '' ? '' : ' ').w), 0)
wrap(t, most) = (line = '', broken = '', (words(t) > 0 ? (sum [i=1:words(t)] put(word(t, i), most)) : 0), broken.line)
heading_room = (text ? 1000 : floor((wide - 20) / (letter_px * 0.92))) # as in plot_render.c
count_lines(t) = 1 + (strlen(t) > 0 ? (sum [i=1:strlen(t)] (t[i:i] eq "\n" ? 1 : 0)) : 0)
heading = heading_lines[1]
do for [i=2:|heading_lines|] { heading = heading."\n".heading_lines[i] }
heading_font = sprintf(',%g', 0.92 * own)
# In the middle of the picture, not of the axes.
centred = 'unset title; set tmargin 1.8 + 1.02 * count_lines(heading); \
    set label 90 heading at screen 0.5,1 center offset 0,-1.2 font heading_font'
if (text) { set title heading } else { eval centred }
# Bars of several frameworks and numbers of nodes: the numbers at the bars, the name of each framework below its own, where these fit.
clusters = 'clustered = (!text && xtitle eq ''framework, nodes''); array middle_bar[groups]; bars_drawn = 0; \
    do for [g=1:groups] { stats data index g-1 using 3 nooutput; middle_bar[g] = (STATS_min + STATS_max) / 2; bars_drawn = STATS_max + 0.5 }; \
    do for [g=1:groups] { stats data index g-1 using 3 nooutput; \
        if (strlen(labels[g]) * letter_px * 12 / own > 0.8 * wide * (STATS_max - STATS_min + 1.4) / bars_drawn) { clustered = 0 } }; \
    if (clustered) { set xlabel ''nodes'' offset 0,-1.2; tic_font = (narrow ? '',9'' : '',11''); set xtics norotate center font tic_font; \
        do for [g=1:groups] { set label 300 + g labels[g] at first middle_bar[g], graph 0 center offset 0,-2.3 font '',12'' } }'
set border 3 linewidth 0.8
set tics nomirror out
if (text) { set border 15; set tics in } else { set grid linecolor rgb '#DDDDDD' linewidth 0.6 dashtype 1 }
set autoscale fix
narrow = !text && wide < 700 # a small screen: the key in one column
if (!text) { set xlabel offset 0,(format eq 'svg' ? 0.8 : 0.4) }
set key outside bottom center vertical Left reverse samplen 3 spacing 1.1 noautotitle maxrows (narrow ? 14 : 5)
if (!text) { set format '%.10g' } # gnuplot's own leaves room for a sign: labels next to their tics
if (!text) { set key title ' ' font ',8' } # keeps the key away from the axis' title
if (text) {
    # letters A to F for points; a line holds less of the key
    set key maxrows 9 samplen 4
    do for [l=1:6] { set linetype l pointtype l }
}
