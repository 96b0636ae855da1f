def test_doctor_says_what_is_there_and_what_for(commsim):
    found = {r["what"]: r["found"] for r in commsim.results("doctor")["results"]}
    assert int(found["cores"]) >= 1
    assert found["numba"][0].isdigit()
    assert found["root"] in ("yes", "no")
    assert found["tc netem"].split()[0] in ("yes", "no", "unknown")
