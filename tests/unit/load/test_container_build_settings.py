from load.container.build_settings import pip_settings


def test_environment_beats_the_files_when_both_name_an_index() -> None:
    listing = ":env:.index-url='https://from.env/simple'\nglobal.index-url='https://from.file/simple'\n"
    assert pip_settings(listing) == {"index-url": "https://from.env/simple"}


def test_what_is_about_this_machine_stays_here_when_settings_are_handed_on() -> None:
    listing = "global.cert='/etc/ssl/ca.pem'\nglobal.cache-dir='/var/cache'\ninstall.user='true'\nglobal.timeout='9'\n"
    assert pip_settings(listing) == {"timeout": "9"}


def test_folders_are_left_out_when_links_name_them_beside_addresses() -> None:
    listing = "global.find-links='/opt/wheels\\nhttps://a.example/wheels\\nfile:///srv/wheels'\n"
    assert pip_settings(listing) == {"find-links": "https://a.example/wheels"}


def test_every_index_is_kept_when_there_are_several() -> None:
    listing = "global.extra-index-url='https://a.example/simple\\nhttps://b.example/50%25/simple'\n"
    assert pip_settings(listing) == {"extra-index-url": "https://a.example/simple\nhttps://b.example/50%25/simple"}
