"use strict";
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)").matches;
const config = {  // the buttons by name: others would offer to send the plot away
  responsive: true, displaylogo: false, typesetMath: false,
  modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
};

function colours() {
  const style = getComputedStyle(document.documentElement);
  return (name) => style.getPropertyValue("--" + name).trim();
}

function traces(curves, names, colour) {
  const seen = new Set();
  const label = names > 1 ? "%{fullData.name}" : "";
  return curves.map((curve) => {
    const wide = curve.width > 2;  // a band, seen on both sides of what hides it
    const line = { dash: wide ? "solid" : curve.dash, width: curve.width,
      color: curve.colour === "ink" ? colour("ink") : curve.colour };
    const first = !seen.has(curve.name);
    seen.add(curve.name);
    return {
      type: "scatter", mode: curve.marked ? "lines+markers" : "lines", line, marker: { size: 6 },
      opacity: wide ? 0.45 : 1,
      name: curve.name, legendgroup: curve.group, showlegend: first, x: curve.x, y: curve.y,
      hovertemplate: "%{x:.6~g}, %{y:.5~g}<extra>" + label + "</extra>",
    };
  });
}

function axis(about, values, colour, shown = null) {
  const exponents = values.filter((value) => value > 0).map(Math.log10);
  const decades = exponents.reduce((a, b) => Math.max(a, b), -Infinity)
    - exponents.reduce((a, b) => Math.min(a, b), Infinity);
  const few = about.log && decades < 3;  // then 1, 2 and 5 are written out
  return {
    title: { text: about.title, standoff: 8 }, type: about.log ? "log" : "linear",
    automargin: true, exponentformat: "power", tickformat: few ? "~g" : "",
    nticks: few && decades > 1 ? Math.round(2 * decades) : 0, ticks: "outside",
    gridcolor: colour("line"), zerolinecolor: colour("line"), tickcolor: colour("line"),
    linecolor: colour("faint"),
    ...(shown ? { range: about.log ? shown.map(Math.log10) : shown } : {}),
  };
}

function threshold(height, colour) {
  return {
    type: "line", xref: "paper", x0: 0, x1: 1, y0: height, y1: height, layer: "below",
    line: { color: colour("faint"), width: 1, dash: "dash" },
  };
}

function heightBeside(height, log, colour) {
  const [text] = [String(height), height.toExponential()].sort((a, b) => a.length - b.length);
  return {
    xref: "paper", x: 1, xanchor: "left", y: log ? Math.log10(height) : height,
    text, showarrow: false, font: { color: colour("faint"), size: 12 },
  };
}

function legendRows(names, width) {
  let rows = 1, used = 0;
  for (const name of names) {
    const needed = 70 + 7 * name.length;
    if (used && used + needed > width - 100) { rows += 1; used = 0; }
    used += needed;
  }
  return names.length > 1 ? rows : 0;
}

function layout(figure, names, width, colour) {
  const marked = figure.threshold !== null;
  return {
    height: 350 + 22 * legendRows(names, width),
    margin: { l: 20, r: marked ? 44 : 24, t: 32, b: 20 },
    paper_bgcolor: colour("paper"), plot_bgcolor: colour("paper"),
    font: { color: colour("ink"), size: 13, family: getComputedStyle(document.body).fontFamily },
    xaxis: axis(figure.x, figure.curves.flatMap((curve) => curve.x), colour),
    yaxis: axis(figure.y, figure.heights || figure.curves.flatMap((curve) => curve.y), colour,
      figure.heights),
    shapes: marked ? [threshold(figure.threshold, colour)] : [],
    annotations: marked ? [heightBeside(figure.threshold, figure.y.log, colour)] : [],
    showlegend: names.length > 1, uirevision: "kept", hovermode: "closest",
    dragmode: touch ? false : "zoom",
    legend: { orientation: "h", itemwidth: 44, x: 0, xref: "container", xanchor: "left",
      y: 0, yref: "container", yanchor: "bottom" },
    hoverlabel: { bgcolor: colour("raised"), bordercolor: colour("line"), namelength: -1,
      font: { color: colour("ink") } },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("ink") },
  };
}

async function loadPlotly() {  // packed, as it is two thirds of the page
  const packed = document.getElementById("plotly").textContent;
  const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

function draw() {
  const colour = colours();
  figures.forEach((figure, i) => {
    const box = document.getElementById("plot-" + i);
    const names = [...new Set(figure.curves.map((curve) => curve.name))];
    Plotly.react(box, traces(figure.curves, names.length, colour),
      layout(figure, names, box.clientWidth, colour), config);
  });
}

if ("DecompressionStream" in window) {
  loadPlotly().then(() => {
    draw();
    dark.addEventListener("change", draw);
  });
} else {
  const note = document.createElement("p");
  note.textContent = "The plots of this page need a browser of 2023 or later.";
  document.querySelector("main").prepend(note);
}
