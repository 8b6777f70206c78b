"""URLs made by chance, of which none but those of one site may be reached; the same for the same seed."""

from random import Random

# Written in all the ways that some program reads as an address that is not public.
FORBIDDEN = """
    127.0.0.2 127.0.2 2130706434 0x7f.2 0177.0.0.2 0x7f000002 017700000002 127.0.0.2. ０.０.０.０ １２７。0。0。2
    ①②⑦.⓪.0.2 %31%32%37.0.0.2 localhost LOCALHOST. ⓛocalhost 0 0.0.0.0 127.255.255.254 10.0.0.1
    012.0.0.1 0xa.1 167772161 172.16.0.1 192.168.1.1 192.0.2.1 100.64.0.1 198.18.0.1 169.254.169.254
    0xA9FEA9FE 2852039166 0251.0376.0251.0376 169.16689662 100.100.100.200 224.0.0.1 255.255.255.255
    240.0.0.1 [::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:10.0.0.1] [::ffff:7f00:2]
    [::ffff:0:127.0.0.1] [64:ff9b::127.0.0.1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::]
    [fe80::1] [fe80::1%25lo] [::1%lo] [fd00:ec2::254] [fc00::1] [ff02::1] [2001:db8::1] private.example
    mixed.example mapped.example scoped.example rebinding.example metadata.google.internal
    unknown.example nothing.example garbage.example xn-- xn--a a..b -
""".split()  # noqa: SIM905
ALLOWED = ("127.0.0.1", "127.1", "2130706433", "[::ffff:7f00:1]", "here.example", "HERE.example.", "ｈere.example")
SCHEMES = (*["http://"] * 10, "HTTP://", "https://", "http:/", "http:", "//", "", "ftp://", "file://", "ws://")
USERS = (*[""] * 15, "user@", "user:hunter2@", "@", ":@", "a%40b@")
PATHS = (
    "", "/", "/a", "/a/../b", "?q=1", "#f", "/\\", "\\", "/%2e%2e/", "/a b", "/\u202e", "/@127.0.0.2/", "/%00",
    "//x", "/é?ü#ö",
)  # fmt: skip
ODD = "%@\\[]。\u200b\t .:#?/&\x00\r\nｏ\u00ad\ud800é"


class Urls:
    """URLs by chance. `port` is that of the site."""

    def __init__(self, seed: int, port: int) -> None:
        self.random = Random(seed)
        self.ports = (*[f":{port}"] * 10, "", ":", ":0", ":22", ":99999", f":0{port}")

    def url(self) -> str:
        """One, in one of four somewhat damaged."""
        pick = self.random.choice
        host = pick(ALLOWED if self.random.random() < 0.2 else FORBIDDEN)
        text = pick(SCHEMES) + pick(USERS) + host + pick(self.ports) + pick(PATHS)
        if self.random.random() < 0.25:
            at = self.random.randrange(len(text) + 1)
            text = text[:at] + pick(ODD) + text[at + pick((0, 0, 1)) :]
        return text
