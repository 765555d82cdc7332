"""What the figures show and how to read them, in plain words."""

from __future__ import annotations

from benchmirt.figures import words

CAPTIONS: dict[str, str] = {
    "verdicts": (
        "One line per claim. The shaded band is where the claim is true, the bar is the 95 % interval of the corrected "
        "estimate (for the number of dimensions, the answers of two methods; for stability, 95 % of the splits); a "
        "diamond, where there is one, is the published figure. A bar wholly inside the band: reproduced; wholly outside: "
        "not reproduced; across its border: inconclusive. The ends of each scale are written below it."
    ),
    "abilities": (
        "Each mark is a language model, placed by its abilities, in standard deviations of the assumed spread of models. "
        "Thin bars are 95 % intervals over other answers, other lineages and, from three benchmarks on, other mixes of them. "
        "Colour and shape tell the lineage, since models of one lineage are not independent of each other."
    ),
    "item_map": (
        "Each mark is a question, placed by what it tells apart: the farther from the centre, the more sharply it separates "
        "able from less able models; the direction says in which ability (lines with arrows). A benchmark of few subsets has "
        "them in colours and shapes, each with its mean and a contour around half of it; one of many has their means as white "
        "dots. Grey: the questions of the other benchmarks. Crosses at the edge lie beyond the frame."
    ),
    "directions": (
        "The mean direction of each benchmark’s questions. A benchmark along an ability asks for that ability; one that "
        "points the other way is passed by models that have less of it. The length in the round picture is the mean "
        "discrimination; arcs and bars are 95 % bootstrap intervals over lineages."
    ),
    "correlations": (
        "How each benchmark’s average goes with each ability over the models. Left: abilities from all answers, so that a "
        "benchmark is compared with something it is part of. Right: abilities from all the other benchmarks, the fair "
        "comparison; without a number where an ability rests on the benchmark and is another one without it."
    ),
    "eigenvalues": (
        "The strongest pattern that is left over when the model already has so many dimensions, beside what chance would "
        "leave (grey). The first point that does not rise above the grey says how many dimensions are enough."
    ),
    "heldout": (
        "Prediction of models of lineages that were never seen, half of whose answers were shown: log loss, where less is "
        "better. The smallest number of dimensions within one standard error of the best is chosen (ring). Below, if "
        "given: the accuracy on single answers that were left out, as the published study did it."
    ),
    "scores": (
        "Answers that were held out, in several ways, and predicted by simple means, by additive models (Rasch) and by models "
        "with several abilities (MIRT); bars are 95 % intervals. Left: the share of answers foretold right; right: log loss, "
        "which punishes false confidence and cannot be bettered by it. What lies beyond the dashed line predicts better than "
        "the model’s own mean on the benchmark. Crosses: the study’s own fits, with its priors and on its data."
    ),
    "calibration": (
        "Of the answers that were given a probability of, say, .7, seven of ten should be right: the nearer to the dashed "
        "line, the more a method’s probabilities mean what they say."
    ),
    "stability": (
        "Models and questions are split into halves that share nothing, and both are fitted. Upper marks: how well a dimension "
        "of one half agrees with that of the other. Lower marks: the mean of the same for data made without that dimension. If "
        "it is really there, the mean of the halves lies beyond the dashed line. One that is not turns those before it, which "
        "are then judged without it."
    ),
    "reproducibility": (
        "The same data fitted from different random starts. This tests the computation, not the finding: even a dimension "
        "of pure noise can come out the same each time. From .9 to .99 is as far as from .99 to .999. A cross is a run that "
        "did not settle."
    ),
    "coverage": (
        "Which share of each benchmark’s questions each model has an outcome for. Hatched: not run at all."
    ),
}

_ONE_ABILITY = {
    "abilities": (
        "Each mark is a language model, from the highest to the lowest ability, in standard deviations of the assumed "
        "spread of models. Thin bars are 95 % intervals over other answers, other lineages and, from three benchmarks on, other "
        "mixes of them. Colour and shape tell the lineage, since models of one lineage are not independent of each other."
    ),
    "item_map": (
        "How sharply the questions of each benchmark separate able from less able models: the farther to the right, the "
        "more sharply. A question left of 0 is passed by the less able ones."
    ),
    "directions": (
        "How sharply each benchmark’s questions separate able from less able models, on average. A benchmark left of 0 is "
        "passed by the less able ones. Bars are 95 % bootstrap intervals over lineages."
    ),
}
"""Captions of those figures that show a single ability in another way."""

_KINDS: dict[str, str] = {
    "count": "Counts of this study beside what they should be (black lines).",
    "dimensionality": (
        "Evidence on the number of dimensions (ring, or first open point beside the grey of chance: the number chosen), and "
        "below it the answers of the two methods with the region in which the claim is true."
    ),
    "stability": (
        "Agreement of each dimension between independent halves and by chance, and below it the claim’s own "
        "numbers, each with the range of 95 % of the splits."
    ),
    "direction": (
        "The questions that the claim speaks of, in the plane of {plane}, with their mean directions and 95 % "
        "bootstrap intervals (wedges). Below: the claim’s own numbers with the region in which the claim is true."
    ),
    "angles": (
        "The angle between the mean direction of the questions and that of the ability that the claim names for them: 0° is "
        "along it, 90° is across it. The shaded band is where the claim is true; bars are 95 % intervals."
    ),
    "contrast": (
        "The two sets of questions that the claim sets against each other, in the plane of {plane}, with their "
        "mean directions and 95 % bootstrap intervals (wedges). Below: the difference and the region in which the claim "
        "is true."
    ),
    "prediction": (
        "Scores of all methods on the answers that were held out (the best one filled), by what was held out, and those of "
        "the study’s own fits (crosses). The claim sets the methods in bold against each other; the dashed line is the score "
        "of the one to be bettered. Below: the claim’s own gains with the region in which the claim is true."
    ),
    "correlation": (
        "Benchmark average against ability, one mark per model; the benchmark’s own answers have no part in the ability "
        "where the axis says so. Below: the claim’s own numbers with the region in which the claim is true."
    ),
    "shortform": (
        "What fewer questions lose, judged on models of lineages that had no part in choosing the questions. Bands: 95 % of "
        "random choices of as many questions. Below: the claim’s own numbers with the region in which the claim is true."
    ),
    "pair": (
        "How many more of the questions the changed model passes than its original. Above: from the questions that discriminate "
        "an ability least to those that do so most, in equal bins (bands: 95 % intervals; thin: as published). Middle: on "
        "the tenth that discriminates each ability most and least, chosen without the pair and paired (filled, 95 % intervals), "
        "and as published (open). Below: the claim’s own numbers with the region in which the claim is true."
    ),
    "mix": (
        "Other mixes of benchmarks beside the whole: congruence of the discriminations (filled) and correlation of the "
        "abilities (open), with the border of fair similarity (line). Below: the claim’s own number with the region in which "
        "the claim is true."
    ),
    "label": (
        "How the discriminations are spread under each label of the prompts: middle half (thick), 90 % (thin), median (line) "
        "and mean (dot). Below: the claim’s own number with the region in which the claim is true."
    ),
}


def of_figure(name: str, dims: int) -> str:
    """Return the caption of a figure of the catalogue.

    Parameters
    ----------
    name
        Name of the figure.
    dims
        Number of abilities that it shows.
    """
    text = _ONE_ABILITY.get(name, CAPTIONS[name]) if dims == 1 else CAPTIONS[name]
    if name == "item_map" and dims > 2:
        text += f" Only the first two of the {words.spelled(dims)} abilities are shown."
    return words.punctuate(text)


def of_kind(kind: str, dims: int) -> str:
    """Return the caption of a claim's figure, in a study with so many abilities.

    Parameters
    ----------
    kind
        The claim's kind; `angles` for one on the directions of so many sets that the figure has no plane.
    dims
        Number of abilities.
    """
    plane = "the two abilities" if dims == 2 else f"two of the {words.spelled(dims)} abilities"
    text = _KINDS.get(kind, "The claim’s numbers with the region in which the claim is true.")
    return words.punctuate(text.format(plane=plane))
