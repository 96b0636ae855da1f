import shutil

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """A headless Chromium without network, with an empty profile; its log is read after each page."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    flags = ["headless=new", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking"]
    flags += [
        "disable-component-update",
        "disable-sync",
        "window-size=1400,1000",
        "host-resolver-rules=MAP * ~NOTFOUND",
    ]
    flags += [f"user-data-dir={tmp_path_factory.mktemp('profile')}", "disable-dev-shm-usage"]
    for flag in flags:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()
