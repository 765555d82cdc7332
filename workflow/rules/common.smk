"""Common: the study that the configuration describes, and the few things that several rules ask for."""

import os
import re
from functools import cache
from pathlib import Path

import benchmirt.report as page
from benchmirt import claims, figures, logs, provenance, sources
from benchmirt import config as studies
from benchmirt.errors import InputError
from benchmirt.files import read_json, stamp_of

ROOT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]


def or_stop(function, *arguments, **options):
    """Return what a function returns; a fault of the user's input ends everything with its sentence alone."""
    try:
        return function(*arguments, **options)
    except InputError as fault:
        raise SystemExit(f"Error: {fault}") from None


def read(file):
    """Stop at what YAML would pass over in silence, such as a key that stands twice."""
    or_stop(studies.read_mapping, file, os.path.relpath(file))


# Files of a workflow that imports this one are its own business.
if Path(workflow.main_snakefile).resolve() == (ROOT / "Snakefile").resolve():
    for file in workflow.configfiles:
        read(file)


# A configuration that names its sources is a whole study. Any other is laid over the config.yaml of the working
# directory, and where that names none either, both over the one of this workflow.
if "sources" not in config and Path("config.yaml").exists():
    read("config.yaml")

    configfile: "config.yaml"


if "sources" not in config:

    configfile: str(ROOT / "config.yaml")

    if Path("config.yaml").is_file():

        configfile: "config.yaml"


origin = ", ".join(os.path.relpath(file) for file in workflow.configfiles) or "configuration"
STUDY = or_stop(studies.load, config, Path(), ROOT, origin=origin)
for section in ("fits", "dimensions"):  # captions tell what holds, with defaults and what `full` changes
    config[section] = STUDY.raw[section]
CLAIMS = or_stop(claims.load, STUDY)
ROAD = STUDY.published_road
SOURCES = [source.name for source in STUDY.sources]
PLANS = {source.name: or_stop(sources.plan, source, STUDY, results="<results>") for source in STUDY.sources}
FETCHED = {
    (name, role): wanted
    for name, found in [
        *((source.name, or_stop(sources.data_sets, source, STUDY)) for source in STUDY.sources),
        (studies.STATISTICS, STUDY.published_statistics),
        *([(ROAD.name, ROAD.fetched)] if ROAD else []),
    ]
    for role, wanted in found.items()
    if isinstance(wanted, dict)
}
EVERY_DATA_SET = [[f"{name}/{role}", wanted] for (name, role), wanted in FETCHED.items()]
CHECKS = [  # against what the study was published with
    *(["<results>/published_statistics/differences.csv"] if STUDY.published_statistics else []),
    *(["<results>/roads/disagreements.csv"] if ROAD else []),
]
FITS = {row["fit"]: row for row in studies.fits_table(STUDY)}
OTHER_FITS = studies.checks_of(list(FITS.values()))
ENTRIES = {entry["id"]: entry for entry in studies.claims_table(STUDY)}
KINDS = {claim: entry.kind for claim, entry in CLAIMS.items()}
ENGINES = {
    engine: {key: value for key, value in STUDY.fits[engine].items() if key != "run"}
    for engine in ("svi", "em", "nuts")
}


@cache
def code_of(script, *also):
    """Fingerprint of the library modules that a script uses: editing one of them reruns exactly its rules."""
    return provenance.script_fingerprint(ROOT / "scripts" / f"{script}.py", also)


def as_is(value):
    """A parameter whose words keep their braces, which Snakemake would take for wildcards."""
    return lambda wildcards: value


def sources_of(*kinds):
    """Names of the sources of some kinds."""
    return [source.name for source in STUDY.sources if source.kind in kinds]


def outcomes(*beside):
    """Outcomes of all sources: the shard of a table and the files beside it, the folders of raw files' jobs."""
    return [
        f"<results>/outcomes/{source}/{path}"
        for source, batches in PLANS.items()
        for batch in batches
        for path in ([batch.name] if batch.name else beside)
    ]


def stamp(files):
    """What tells that a file of the user's was replaced, even by an older one, which times alone do not.

    Snakemake reruns for parameters that depend on wildcards alone, not for those that are handed the input.
    """
    return stamp_of(file for file in files if not str(file).startswith("<results>"))


def chosen_models(source):
    """What says which models of a source are collected, where only its files name them; None for other sources."""
    named = STUDY.source(source).kind in studies.FILES
    return [STUDY.models["include"], STUDY.models["exclude"]] if named else None


def one_of(names):
    """Regular expression that matches the given names and nothing else."""
    return "|".join(map(re.escape, names)) or "(?!)"


def fits_of(*engines):
    """Names of the fits made by one of the engines."""
    return [fit for fit, row in FITS.items() if row["engine"] in engines]


def seeds(fit):
    """Files of all seeds of a fit."""
    return [f"<results>/fits/{fit}/seed{seed}.nc" for seed in FITS[fit]["seeds"]]


def matrix(policy):
    """Files of a response matrix: what `benchmirt.matrix.load` reads."""
    tables = ("responses", "items", "models")
    return [f"<results>/matrix/{policy}/{table}.parquet" for table in tables]


def published_models(claim):
    """The published table of models, if a claim has check values that it can be held against."""
    places = STUDY.statistics_places("<results>")
    return [places["models"]] if CLAIMS[claim].check_values and "models" in places else []


def calibration(folder=""):
    """Files of a calibration: of the one in a folder, or of this study's own."""
    home = os.path.normpath(folder) if folder else "<results>/calibration"
    return [f"{home}/{name}" for name in studies.CALIBRATION]


def chain_threads(wildcards):
    """A core per chain; but one for all of them where the other jobs would have to wait for so many to be free."""
    chains = STUDY.fits["nuts"]["chains"]
    # None on a cluster, whose jobs, Snakemakes of their own, see no more cores than they were given
    cores = None if workflow.remote_exec else workflow.resource_settings.cores
    return chains if cores is None or cores >= 2 * chains else 1


def cells_of(path):
    """Cells of the larger matrix of the study whose results hold a file; 0 before there is one.

    Of the larger one, since jobs that go to a cluster as one array all get what the first of them asks for.
    """
    for home in Path(path).parents:
        if found := list(home.glob("matrix/*/summary.json")):
            return max(size["models"] * size["items"] for size in map(read_json, found))
    return 0


def memory(base, per_cell=0):
    """Megabytes that a job asks for: a base, plus bytes per cell of its matrix; twice as much at each new attempt."""

    def needed(wildcards, input, attempt):
        cells = cells_of(input[0]) if per_cell and input else 0
        return int((base + per_cell * cells / 1e6) * 2 ** (attempt - 1))

    return needed


wildcard_constraints:
    source=one_of([*SOURCES, "twin", studies.STATISTICS, studies.RESPONSES]),
    policy="published|honest",
    fit=one_of(FITS),
    seed=r"\d+",
    claim=one_of(CLAIMS),
