//! Figures and the report from outside.

use shallows_results::figure::{
    Axis, BoxRow, Curve, Extent, Figure, Heat, HeatRow, Look, Origin, Panel, Plot, Point, Row,
    Width, Words,
};
use shallows_results::report::{
    self, ClaimOutcome, Deviation, FigureOutcome, LiveRuns, LiveValue, Paper, Reproduction, Size,
    Verdict,
};

fn axis(label: &str, extent: Extent) -> Axis {
    Axis::new(label, extent)
}

fn figure() -> Figure {
    let point = |x: f64, y: f64| Point {
        x,
        y,
        low: y - 0.1,
        high: y + 0.1,
    };
    let curve = |label: &str, style: usize, y: f64| Curve {
        origin: Origin::Simulated,
        label: label.to_owned(),
        style,
        points: vec![point(10.0, y), point(90.0, y / 2.0)],
    };
    Figure {
        name: "toy-fig1".to_owned(),
        alt: "Less <is> more".to_owned(),
        panels: vec![
            Panel {
                title: "(a) A & B".to_owned(),
                x: axis("Load (%)", Extent::Data),
                y: axis("Normalised FCT", Extent::Reference(1.0)),
                plot: Plot::Points(vec![curve("One", 0, 1.0), curve("Two", 1, 0.8)]),
            },
            Panel {
                title: "(b) Rows".to_owned(),
                x: axis("FCT", Extent::Reference(1.0)),
                y: axis("", Extent::Data),
                plot: Plot::Rows(vec![Row {
                    label: "Two".to_owned(),
                    value: 0.8,
                    low: 0.7,
                    high: 0.9,
                    origin: Origin::Simulated,
                    paper: Some(0.75),
                }]),
            },
        ],
    }
}

fn reproduction() -> Reproduction {
    let claim = |id: &str, verdict| ClaimOutcome {
        id: id.to_owned(),
        quote: "Less <script>alert(1)</script> is more.".to_owned(),
        what: "less".to_owned(),
        paper: "4.1%".to_owned(),
        ours: "3.9%".to_owned(),
        spread: Some("3.1 to 4.4%".to_owned()),
        values: vec![3.9],
        points: Vec::new(),
        verdict,
        note: None,
        marks: Vec::new(),
        authors_code: None,
        explanation: None,
        live: None,
    };
    Reproduction {
        paper: Paper {
            id: "toy".to_owned(),
            title: "On Toys".to_owned(),
            authors: "A. Nobody".to_owned(),
            venue: "TOYS 2020".to_owned(),
            about: "About toys.".to_owned(),
        },
        figures: vec![FigureOutcome {
            id: "fig1".to_owned(),
            title: "Figure 1".to_owned(),
            caption: "A figure".to_owned(),
            section: "§1".to_owned(),
            note: None,
            size: Size::Full,
            only_at: None,
            options: String::new(),
            version: "0".to_owned(),
            seeds: 3,
            runs: 12,
            figure: figure(),
            claims: vec![
                claim("a", Verdict::Reproduced),
                claim("b", Verdict::NotReproduced),
            ],
            variants: vec![("One".to_owned(), vec!["a.b=1".to_owned()])],
            settings: vec!["c=2".to_owned()],
            scenario: "seed = 1\n".to_owned(),
            live: None,
        }],
        deviations: vec![Deviation {
            section: "§1".to_owned(),
            quote: "Real toys.".to_owned(),
            ours: "Simulated toys.".to_owned(),
            reason: "We have none.".to_owned(),
        }],
    }
}

#[test]
fn a_figure_is_drawn_with_all_its_parts_and_no_broken_number() {
    let svg = figure().to_svg();
    for part in [
        "Less &lt;is&gt; more",
        "(a) A &amp; B",
        "One",
        "Two",
        "Normalised FCT",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    // Two curves with two points each, a row, and two samples in the legend.
    assert_eq!(svg.matches("class=\"mark ").count(), 2 * 2 + 1 + 2);
    // An error bar for each point and the row.
    assert_eq!(svg.matches("class=\"bar ").count(), 5);
}

#[test]
fn pixels_show_ink_and_text() {
    let png = figure().to_png();
    assert_eq!(&png[1..4], b"PNG");
    assert!(
        png.len() > 5_000,
        "{} bytes are an empty picture",
        png.len()
    );
}

#[test]
fn words_around_a_figure_have_room_of_their_own() {
    let words = Words {
        title: "Less & more".to_owned(),
        note: "Bars are everywhere.".to_owned(),
        width: Width::Screen,
    };
    let height = |svg: &str| {
        let (_, rest) = svg.split_once(" height=\"").unwrap();
        let (height, _) = rest.split_once('"').unwrap();
        height.parse::<u32>().unwrap()
    };
    let (plain, with) = (figure().to_svg(), figure().to_svg_with(&words));
    assert!(with.contains(">Less &amp; more<") && with.contains(">Bars are everywhere.<"));
    assert_eq!(height(&with), height(&plain) + 48);
    assert_eq!(figure().to_svg_with(&Words::default()), plain);
    figure().to_png_with(&words);
}

#[test]
fn a_figure_without_data_is_still_a_figure() {
    let mut empty = figure();
    empty.panels[0].plot = Plot::Lines(Vec::new());
    empty.panels[1].plot = Plot::Rows(Vec::new());
    assert!(!empty.to_svg().contains("NaN"));
    empty.to_png();
}

#[test]
fn rows_of_very_different_values_are_each_drawn_at_their_own_place() {
    let mut figure = figure();
    let row = |value: f64| Row {
        label: format!("{value} senders"),
        value,
        low: value,
        high: value,
        origin: Origin::Simulated,
        paper: None,
    };
    let values = [487.0, 249.0, 132.0, 60.0, 30.0, 15.0];
    figure.panels = vec![Panel {
        title: "Goodput".to_owned(),
        x: axis("Mbps", Extent::Data),
        y: axis("", Extent::Data),
        plot: Plot::Rows(values.map(row).to_vec()),
    }];
    let svg = figure.to_svg();
    let marks = svg.split("class=\"mark ").skip(1);
    let places: Vec<f64> = marks
        .map(|mark| {
            let (_, path) = mark.split_once(" d=\"M").unwrap();
            let (x, _) = path.split_once(' ').unwrap();
            x.parse().unwrap()
        })
        .collect();
    assert_eq!(places.len(), values.len());
    // Equal ratios are equal distances, and nothing is moved to the edge.
    assert!(
        places.windows(2).all(|pair| pair[1] < pair[0] - 10.0),
        "{places:?}"
    );
    assert!(
        (places[4] - places[5] - (places[3] - places[4])).abs() < 0.1,
        "{places:?}"
    );
}

#[test]
fn boxes_and_logarithmic_axes_are_drawn() {
    let mut figure = figure();
    let values: Vec<f64> = (1..=1000).map(|n| f64::from(n) / 10.0).collect();
    let row = BoxRow::of_sorted("Two", &values).unwrap();
    assert_eq!((row.p1, row.p50, row.p99), (1.1, 50.1, 99.0));
    assert_eq!(BoxRow::of_sorted("None", &[]), None);
    figure.panels[0].y = axis("FCT (ms)", Extent::Data).logarithmic();
    figure.panels[1] = Panel {
        title: "(b) Boxes".to_owned(),
        x: axis("RTT (us)", Extent::Data).logarithmic(),
        y: axis("", Extent::Data),
        plot: Plot::Boxes(vec![row]),
    };
    let svg = figure.to_svg();
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    // Of the box and of the four points.
    assert_eq!(svg.matches("class=\"bar ").count(), 1 + 4);
    assert_eq!(figure.to_csv().lines().count(), 1 + 4 + 5);
    figure.to_png();
}

#[test]
fn a_scatter_has_a_dot_for_each_point_and_the_diagonal() {
    let mut figure = figure();
    let Plot::Points(curves) = figure.panels[0].plot.clone() else {
        unreachable!("the figure of this file begins with points");
    };
    figure.panels[0].plot = Plot::Scatter(curves);
    figure.panels[0].x = axis("ns-2", Extent::Data).logarithmic();
    figure.panels[0].y = axis("ours", Extent::Data).logarithmic();
    let svg = figure.to_svg();
    assert_eq!(svg.matches("h0").count(), 4);
    assert_eq!(svg.matches("class=\"dots ").count(), 2);
    assert!(!svg.contains("NaN"));
}

#[test]
fn data_has_a_row_for_each_point() {
    let csv = figure().to_csv();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 4 + 1);
    assert_eq!(lines[0], "panel,curve,x,y,low,high");
    assert_eq!(lines[1], "(a) A & B,One,10,1,0.9,1.1");
    assert_eq!(lines[5], "(b) Rows,Two,,0.8,0.7,0.9");
}

#[test]
fn the_page_is_self_contained_and_escapes_what_it_quotes() {
    let directory = tempfile::tempdir().unwrap();
    let reproduction = reproduction();
    reproduction.write(directory.path()).unwrap();
    let read = report::read_all(directory.path()).unwrap();
    assert_eq!(read, [reproduction]);
    let page = report::write(directory.path(), &read, Look::default()).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    assert!(!page.contains("<script"));
    assert!(page.contains("&lt;script&gt;"));
    for attribute in ["src=", "@import", "url(", "<link rel=\"stylesheet\""] {
        assert!(!page.contains(attribute), "{attribute}");
    }
    let far = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!far.contains("http://") && !far.contains("https://"));
    let markdown = std::fs::read_to_string(directory.path().join("toy-claims.md")).unwrap();
    assert!(markdown.contains("| fig1 | less | 4.1% | 3.9% | 3.1 to 4.4% | reproduced |"));
}

/// Figure 1 once more, on a machine.
fn with_a_live_figure() -> Reproduction {
    let mut reproduction = reproduction();
    let mut live = reproduction.figures[0].clone();
    live.id += "-live";
    live.figure.name += "-live";
    live.size = Size::Live;
    live.live = Some(LiveRuns {
        scale: 0.2,
        runs: 4,
        late_share: 0.001,
        late_p99_us: 25.0,
        steal: Some(0.01),
    });
    live.claims[0].live = Some(LiveValue {
        ours: "4.0%".to_owned(),
        spread: None,
        values: vec![4.0],
        verdict: Verdict::SameDirection,
        note: None,
    });
    reproduction.figures.push(live);
    reproduction
}

#[test]
fn paper_simulated_and_live_are_side_by_side() {
    let table = with_a_live_figure().to_markdown();
    let row = "| fig1-live | less | 4.1% | 3.9% | reproduced | 4.0% | same direction |";
    assert!(table.contains(row), "{table}");
    assert_eq!(table.matches("| fig1 |").count(), 2, "{table}");
    let directory = tempfile::tempdir().unwrap();
    let page = report::write(directory.path(), &[with_a_live_figure()], Look::default()).unwrap();
    let page = std::fs::read_to_string(page).unwrap();
    for text in [
        "<th scope=\"col\">Live</th>",
        "Figure 1, live",
        "live at 0.2 of the rates, 4 runs",
        "fig1 --live</code>",
        "<td class=\"n\">4.0%</td>",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn live_and_published_values_have_the_colour_of_their_scheme_and_marks_of_their_own() {
    let mut figure = figure();
    let Plot::Points(curves) = &mut figure.panels[0].plot else {
        panic!("the first panel has curves")
    };
    let of = |curve: &Curve, label: &str, origin| Curve {
        label: label.to_owned(),
        origin,
        ..curve.clone()
    };
    let (live, paper) = (
        of(&curves[0], "One, live", Origin::Live),
        of(&curves[1], "paper", Origin::Paper),
    );
    curves.extend([live, paper]);
    let svg = figure.to_svg();
    // Two points and the legend's sample.
    assert_eq!(svg.matches("class=\"hollow c0\"").count(), 3);
    assert_eq!(svg.matches("stroke-dasharray=\"5 3\"").count(), 2);
    // Crosses are not joined, and the panel still needs no legend of its own.
    assert_eq!(svg.matches(">paper</text>").count(), 1);
    assert!(svg.contains("FCT; \u{d7} paper"));
    assert!(!figure.to_pdf_with(&Words::default()).is_empty());
}

#[test]
fn curves_that_span_decades_have_a_logarithmic_axis() {
    let mut figure = figure();
    figure.panels.truncate(1);
    figure.panels[0].y = axis("FCT (ms)", Extent::Data);
    let Plot::Points(curves) = &mut figure.panels[0].plot else {
        panic!("the first panel has curves")
    };
    curves[0].points = vec![Point::new(10.0, 0.3), Point::new(90.0, 400.0)];
    curves[1].points = vec![Point::new(10.0, 20.0), Point::new(90.0, 30.0)];
    assert!(figure.to_svg().contains(">0.1</text>"));
    // An axis that has to begin at zero cannot be one.
    figure.panels[0].y.extent = Extent::FromZero;
    assert!(!figure.to_svg().contains(">0.1</text>"));
}

#[test]
fn an_axis_of_counts_does_not_go_below_zero_for_an_interval() {
    let mut figure = figure();
    figure.panels.truncate(1);
    figure.panels[0].y = axis("Timeouts", Extent::Data);
    let Plot::Points(curves) = &mut figure.panels[0].plot else {
        panic!("the first panel has curves")
    };
    curves.truncate(1);
    let wide = |y: f64| Point {
        x: 1.0,
        y,
        low: y - 40.0,
        high: y + 40.0,
    };
    curves[0].points = vec![wide(30.0)];
    assert!(!figure.to_svg().contains(">\u{2212}"));
    // What can be negative has an axis for it.
    let Plot::Points(curves) = &mut figure.panels[0].plot else {
        panic!("the first panel has curves")
    };
    curves[0].points = vec![wide(-10.0)];
    assert!(figure.to_svg().contains(">\u{2212}"));
}

#[test]
fn a_long_title_makes_its_panel_wider() {
    let width = |title: &str| {
        let mut figure = figure();
        figure.panels.truncate(1);
        title.clone_into(&mut figure.panels[0].title);
        let svg = figure.to_svg();
        let (_, rest) = svg.split_once(" width=\"").unwrap();
        rest.split_once('"').unwrap().0.parse::<f64>().unwrap()
    };
    assert!(width(&"A long title ".repeat(5)) > width("Short") + 100.0);
}

#[test]
fn what_has_a_number_that_is_not_finite_can_be_read_again() {
    let mut reproduction = reproduction();
    let figure = &mut reproduction.figures[0];
    figure.figure.panels[0].plot = Plot::Heat(Heat {
        columns: vec!["a".to_owned(), "b".to_owned()],
        rows: vec![HeatRow {
            label: "one".to_owned(),
            values: vec![2.0, f64::NAN],
        }],
        neutral: None,
        label: String::new(),
    });
    figure.claims[0].values = vec![f64::NEG_INFINITY];
    figure.claims[0].points = vec![report::Point {
        of: "a".to_owned(),
        x: 0.0,
        seeds: vec![1.5, f64::INFINITY],
    }];
    let directory = tempfile::tempdir().unwrap();
    reproduction.write(directory.path()).unwrap();
    let read = Reproduction::read(&directory.path().join("toy.json")).unwrap();
    let Plot::Heat(heat) = &read.figures[0].figure.panels[0].plot else {
        panic!("{read:?}");
    };
    assert!(heat.rows[0].values[0] == 2.0 && heat.rows[0].values[1].is_nan());
    let claim = &read.figures[0].claims[0];
    assert!(claim.values[0].is_nan());
    assert!(claim.points[0].seeds[0] == 1.5 && claim.points[0].seeds[1].is_nan());
}
