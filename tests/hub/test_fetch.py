"""Fetching from a hub that behaves, and from one that does not: the real client against a loopback server."""

from __future__ import annotations

import hashlib

import pytest
from job import REPO, TOKEN, Client
from loopback import Hub

OFFLINE = {"HF_HUB_OFFLINE": "1"}
LARGE = r"GET store"


def files_of(hub: Hub, revision: str = "main") -> dict[str, bytes]:
    repo = hub.repos[REPO]
    return repo.commits[repo.branches.get(revision, revision)]


def test_all_files_but_the_card_come_whole_with_a_record_of_their_hashes(hub: Hub, client: Client) -> None:
    commit = hub.repos[REPO].branches["main"]
    done = client.fetch(commit)
    assert done.code == 0, done.text
    wanted = {
        name: data for name, data in files_of(hub).items() if name not in ("README.md", ".gitattributes")
    }
    assert done.files == wanted
    assert done.record is not None
    assert done.record["commit"] == done.record["revision"] == commit
    assert done.record["pinned"] is True
    assert done.record["files"] == {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in wanted.items()
    }
    assert "not pinned" not in done.text


def test_files_are_chosen_by_patterns(hub: Hub, client: Client) -> None:
    assert set(client.fetch(files=("*.csv",)).files) == {"small.csv", "big.csv"}
    assert set(client.fetch(files=("deep/*", "README.md"), out="b").files) == {
        "deep/er/notes.txt",
        "README.md",
    }


def test_a_second_fetch_of_a_commit_asks_the_hub_for_nothing(hub: Hub, client: Client) -> None:
    commit = hub.repos[REPO].branches["main"]
    first = client.fetch(commit)
    hub.asked.clear()
    again = client.fetch(commit, out="again")
    assert again.code == 0, again.text
    assert hub.asked == []
    assert again.files == first.files


def test_a_branch_is_resolved_told_and_followed_when_it_moves(hub: Hub, client: Client) -> None:
    before = hub.repos[REPO].branches["main"]
    first = client.fetch("main", files=("small.csv",))
    assert first.record is not None
    assert (first.record["revision"], first.record["commit"], first.record["pinned"]) == (
        "main",
        before,
        False,
    )
    assert f'revision "main" is not pinned: it is {before} now' in first.text
    assert f"write revision: {before}" in first.text
    after = hub.repos[REPO].commit({**files_of(hub), "small.csv": b"question_id,a\nq1,0\n"})
    second = client.fetch("main", files=("small.csv",), out="second")
    assert second.record is not None
    assert second.record["commit"] == after
    assert second.files == {"small.csv": b"question_id,a\nq1,0\n"}
    assert client.fetch(before, files=("small.csv",), out="third").files == first.files


def test_a_branch_that_moves_between_two_files_gives_files_of_one_commit(hub: Hub, client: Client) -> None:
    before = files_of(hub)
    hub.fail("GET hub/datasets/.*small.csv", status=503)  # the branch moves while the hub is busy
    old = hub.repos[REPO].branches["main"]
    done = client.fetch("main")
    hub.repos[REPO].commit({"small.csv": b"", "big.csv": b""})
    assert done.files["big.csv"] == before["big.csv"]
    assert all(old in asked.path for asked in hub.requests("hub/datasets"))


@pytest.mark.parametrize(
    ("status", "where"), [(429, "api/datasets/.*/tree"), (503, "HEAD .*big.csv"), (429, LARGE)]
)
def test_a_burst_of_refusals_is_waited_out(status: int, where: str, hub: Hub, client: Client) -> None:
    headers = {"Retry_After": "0"} if status == 429 else {}
    hub.fail(where, times=2, status=status, headers=headers)
    done = client.fetch(files=("big.csv",))
    assert done.code == 0, done.text
    assert done.files == {"big.csv": files_of(hub)["big.csv"]}
    assert done.text.count(f"status {status}; next try in") == 2
    assert hub.faults[0].times == 0


def test_a_rate_limit_with_a_long_wait_is_told_at_once(hub: Hub, client: Client) -> None:
    hub.fail("tree", times=9, status=429, headers={"RateLimit": '"api";r=0;t=240'})
    client.fetch().refused(
        "busy or out of reach", "status 429, and the request to wait 240 s", "hub: {tries:"
    )
    assert len(hub.requests("tree")) == 1


def test_a_hub_that_stays_busy_is_given_up_after_as_many_tries_as_were_asked_for(
    hub: Hub, client: Client
) -> None:
    hub.fail("HEAD", times=99, status=503)
    client.fetch(tries=4).refused(REPO, "busy or out of reach", "status 503 4 times", "kept")
    assert len(hub.requests("HEAD")) == 4


def test_a_hub_that_is_not_there_is_told(hub: Hub, client: Client) -> None:
    done = client.fetch(variables={"HF_ENDPOINT": "http://127.0.0.1:9"}, tries=2)
    done.refused("busy or out of reach", "no answer", "2 times")


def test_a_slow_hub_is_asked_again(hub: Hub, client: Client) -> None:
    hub.fail("HEAD .*small.csv", lag=3)
    done = client.fetch(files=("small.csv",), timeout=1.0)
    assert done.code == 0, done.text
    assert "no answer" in done.text
    hub.fail("HEAD .*big.csv", times=9, lag=3)
    client.fetch(files=("big.csv",), timeout=0.5, out="b").refused("busy or out of reach", "no answer")


def test_a_cut_body_is_resumed_at_the_last_ten_megabytes(hub: Hub, client: Client) -> None:
    step = 10 * 2**20
    data = b"question_id,a\n" + b"q1,1\n" * (step // 4)
    hub.repos[REPO].large.add("huge.csv")
    hub.repos[REPO].commit({"huge.csv": data})
    hub.fail(LARGE, cut_after=step + 1000)
    done = client.fetch(files=("huge.csv",))
    assert done.code == 0, done.text
    assert done.files == {"huge.csv": data}
    assert [asked.headers.get("range") for asked in hub.requests(LARGE)] == [None, f"bytes={step}-"]
    assert f"cut off; going on with bytes={step}-" in done.text


def test_a_small_file_that_is_cut_comes_again(hub: Hub, client: Client) -> None:
    hub.fail("GET hub/datasets", cut_after=5)
    done = client.fetch(files=("small.csv",))
    assert done.code == 0, done.text
    assert done.files == {"small.csv": files_of(hub)["small.csv"]}
    assert len(hub.requests("GET hub/datasets")) == 2


def test_lm_evaluation_harness_1311_an_interrupted_fetch_keeps_the_files_that_it_had(
    hub: Hub, client: Client
) -> None:
    hub.fail("HEAD .*small.csv", times=3, status=503)
    client.fetch(files=("*.csv",)).refused("busy or out of reach")
    assert [path.name for path in client.blobs()] == [hashlib.sha256(files_of(hub)["big.csv"]).hexdigest()]
    hub.asked.clear()
    done = client.fetch(files=("*.csv",))
    assert done.code == 0, done.text
    assert hub.requests("store") == []
    assert done.files == {name: files_of(hub)[name] for name in ("big.csv", "small.csv")}


def test_a_damaged_body_is_fetched_again(hub: Hub, client: Client) -> None:
    hub.fail(LARGE, damage=True)
    hub.fail("GET hub/datasets", damage=True)
    done = client.fetch(files=("*.csv",))
    assert done.code == 0, done.text
    assert done.text.count("damaged; it is fetched again") == 2
    assert done.files == {name: files_of(hub)[name] for name in ("big.csv", "small.csv")}


@pytest.mark.parametrize(("name", "where"), [("big.csv", LARGE), ("small.csv", "GET hub/datasets")])
def test_a_body_that_stays_damaged_is_refused_and_leaves_the_cache(
    name: str, where: str, hub: Hub, client: Client
) -> None:
    hub.fail(where, times=2, damage=True)
    client.fetch(files=(name,)).refused(f'file "{name}"', "not the one that the hub lists", "SHA-256")
    assert client.blobs() == []
    assert client.fetch(files=(name,)).files == {name: files_of(hub)[name]}


def test_a_file_that_is_not_as_listed_is_refused(hub: Hub, client: Client) -> None:
    hub.repos[REPO].listed_wrong.add("small.csv")
    client.fetch(files=("small.csv",)).refused('file "small.csv"', "not the one that the hub lists")


def test_a_hash_that_the_study_asks_for_must_be_met(hub: Hub, client: Client) -> None:
    right = hashlib.sha256(files_of(hub)["big.csv"]).hexdigest()
    done = client.fetch(files=("big.csv",), sha256={"big.csv": "0" * 64})
    done.refused('file "big.csv"', f"found SHA-256 {right}", "expected " + "0" * 64)
    assert client.fetch(files=("big.csv",), sha256={"big.csv": right}).code == 0
    client.fetch(files=("small.csv",), sha256={"big.csv": right}, out="b").refused(
        'file "big.csv"', "no such file"
    )


def test_an_answer_of_another_revision_is_refused(hub: Hub, client: Client) -> None:
    hub.fail("HEAD .*small.csv", commit="e" * 40)
    client.fetch(files=("small.csv",)).refused("another revision", "e" * 40, hub.repos[REPO].branches["main"])


GATED = (
    "agreement",
    "accept its conditions",
    "/datasets/org/outcomes",
    "/settings/tokens",
    "export HF_TOKEN=",
)


def test_a_gated_data_set_says_what_to_accept_and_where_and_how_to_set_the_token(
    hub: Hub, client: Client
) -> None:
    hub.repos[REPO].gated = True
    client.fetch().refused(REPO, *GATED, hub.address)
    done = client.fetch(variables={"HF_TOKEN": TOKEN})
    done.refused("has not given access to the account of your token", f"{hub.address}/datasets/{REPO}")
    hub.repos[REPO].readers.add(TOKEN)
    done = client.fetch(variables={"HF_TOKEN": TOKEN})
    assert done.code == 0, done.text
    assert TOKEN not in done.text
    assert any(asked.headers.get("authorization") == f"Bearer {TOKEN}" for asked in hub.asked)
    assert hub.requests("GET store")


def test_the_token_of_a_login_is_used(hub: Hub, client: Client) -> None:
    hub.repos[REPO].gated = True
    hub.repos[REPO].readers.add(TOKEN)
    client.cache.mkdir()
    (client.cache / "token").write_text(TOKEN)
    assert client.fetch().code == 0


def test_no_debugging_shows_the_token(hub: Hub, client: Client) -> None:
    hub.fail("HEAD", status=503)
    done = client.fetch(variables={"HF_TOKEN": TOKEN, "HF_DEBUG": "1"})
    assert done.code == 0, done.text
    assert TOKEN not in done.text


def test_a_token_that_the_hub_does_not_know_is_told(hub: Hub, client: Client) -> None:
    strange = "hf_" + "x" * 30
    done = client.fetch(variables={"HF_TOKEN": strange})
    sentence = done.refused("does not know your token", "/settings/tokens")
    assert strange not in sentence + done.text


def test_a_data_set_that_is_not_there_or_is_private_is_told(hub: Hub, client: Client) -> None:
    client.fetch(repo="org/none").refused('"org/none"', "no such data set, or it is private", "HF_TOKEN")
    client.fetch(repo="org/none", variables={"HF_TOKEN": TOKEN}).refused("no such data set, or it is private")
    hub.repos[REPO].private = True
    client.fetch().refused("no such data set, or it is private")
    hub.repos[REPO].readers.add(TOKEN)
    assert client.fetch(variables={"HF_TOKEN": TOKEN}).code == 0


@pytest.mark.parametrize("revision", ["v9", "0" * 40])
def test_a_revision_that_is_not_there_is_told(revision: str, hub: Hub, client: Client) -> None:
    client.fetch(revision).refused(f'revision "{revision}"', "no such revision", "/commits/main")


def test_a_file_that_is_not_there_is_told_with_the_nearest(hub: Hub, client: Client) -> None:
    client.fetch(files=("smal.csv",)).refused('file "smal.csv"', "no such file", 'Did you mean "small.csv"?')
    client.fetch(files=("*.parquet",)).refused('file "*.parquet"', "found ", "small.csv")


def test_a_file_that_is_listed_but_gone_is_told(hub: Hub, client: Client) -> None:
    hub.fail("HEAD .*small.csv", status=404, headers={"X_Error_Code": "EntryNotFound"})
    client.fetch(files=("small.csv",)).refused('file "small.csv"', "lists this file but does not have it")


@pytest.mark.parametrize("name", ["a/../../out.csv", "/etc/out.csv"])
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, hub: Hub, client: Client) -> None:
    hub.repos[REPO].commit({name: b"question_id,a\n"})
    client.fetch().refused("leads out of its folder")
    assert hub.requests("resolve") == []


def test_a_page_that_is_no_hub_is_told(hub: Hub, client: Client) -> None:
    hub.fail("api/datasets", times=9, status=200)  # a login page, say
    client.fetch().refused("not that of a hub", "found an answer without", "HF_ENDPOINT", "login page")


def test_a_cache_that_cannot_be_written_to_is_told(hub: Hub, client: Client) -> None:
    client.cache.write_text("in the way")
    client.fetch().refused("it cannot be written", "existing file", "HF_HOME can be written to")
    assert hub.asked == []


def test_a_file_in_the_place_of_the_folder_is_told_and_left(hub: Hub, client: Client) -> None:
    path = client.home / "out" / "files"
    path.parent.mkdir()
    path.write_text("somebody's")
    done = client.fetch()
    assert (done.code, done.record, path.read_text()) == (1, None, "somebody's")
    assert "it cannot be written" in done.text
    assert "Take away what stands in its place" in done.text
    assert "Traceback" not in done.text


def test_the_proxy_of_the_user_is_gone_through(hub: Hub, client: Client) -> None:
    far = {"HF_ENDPOINT": "http://hub.invalid", "HTTP_PROXY": hub.address, "NO_PROXY": ""}
    done = client.fetch(files=("small.csv",), variables=far)
    assert done.code == 0, done.text
    assert done.files == {"small.csv": files_of(hub)["small.csv"]}
    assert {asked.headers["host"] for asked in hub.asked} == {"hub.invalid"}


def test_offline_all_comes_from_the_cache(hub: Hub, client: Client) -> None:
    first = client.fetch("main")
    hub.asked.clear()
    for revision in ("main", hub.repos[REPO].branches["main"]):
        done = client.fetch(revision, out=revision, variables=OFFLINE)
        assert done.code == 0, done.text
        assert done.files == first.files
        assert done.record is not None
        assert done.record["commit"] == hub.repos[REPO].branches["main"]
    assert hub.asked == []


def test_offline_what_is_not_in_the_cache_is_told(hub: Hub, client: Client) -> None:
    commit = hub.repos[REPO].branches["main"]
    client.fetch("main", variables=OFFLINE).refused('revision "main"', "HF_HUB_OFFLINE", "with a connection")
    client.fetch(commit, variables=OFFLINE).refused(f'revision "{commit}"', "never fetched", "HF_HUB_OFFLINE")
    assert client.fetch(commit, files=("small.csv",)).code == 0
    done = client.fetch(commit, variables=OFFLINE, out="b")
    done.refused("not whole in the cache", "HF_HUB_OFFLINE")
    assert client.fetch(commit, files=("small.csv",), variables=OFFLINE, out="c").code == 0


def test_offline_a_damaged_file_in_the_cache_is_told(hub: Hub, client: Client) -> None:
    assert client.fetch(files=("small.csv",)).code == 0
    (blob,) = client.blobs()
    blob.unlink()
    blob.write_bytes(b"question_id,a\nq1,0\n")
    done = client.fetch(files=("small.csv",), variables=OFFLINE, out="b")
    done.refused('file "small.csv"', "damaged", "with a connection")
    assert client.fetch(files=("small.csv",), out="c").files == {"small.csv": files_of(hub)["small.csv"]}


def test_a_fetch_replaces_an_older_one_only_when_it_is_whole(hub: Hub, client: Client) -> None:
    old = client.fetch("main", files=("small.csv",))
    hub.repos[REPO].commit({"small.csv": b"question_id,a\nq1,0\n"})
    hub.fail("HEAD", times=9, status=503)
    assert client.fetch("main", files=("small.csv",)).code == 1
    assert old.files == {"small.csv": b"question_id,a\nq1,1\n"}
    hub.faults.clear()
    assert client.fetch("main", files=("small.csv",)).files == {"small.csv": b"question_id,a\nq1,0\n"}
