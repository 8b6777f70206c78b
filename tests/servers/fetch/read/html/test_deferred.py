"""Streamed markup, which is placed as a browser places it, and shadow roots."""

from tests.servers.common.html.bodies import markdown, read_body


def test_react_replaces_the_fallback():
    place = '<main>a<!--$?--><template id="B:0"></template>wait <p>wait</p><!--/$--><p>z</main>'
    for script in (
        '<script>$RC("B:0","S:0")</script>',
        "<script>$RC=function(b,c){};$RC('B:0', 'S:0')</script>",
        '<script>$RR("B:0","S:0",[])</script>',
        '<template data-rci="" data-bid="B:0" data-sid="S:0"></template>',
        '<template data-rri="" data-bid="B:0" data-sid="S:0"></template>',
    ):
        text = markdown(f'{place}<div hidden id="S:0"><p>one</p>two</div>{script}')
        assert text.split() == ["a", "one", "two", "z"], script


def test_react_without_comments_replaces_the_rest_of_the_parent():
    html = '<main><template id="B:0"></template><p>Loading</p></main><div hidden id="S:0">text</div>'
    assert markdown(f'{html}<script>$RC("B:0","S:0")</script>') == "text"


def test_react_fills_segments_and_nested_boundaries():
    html = """<main><!--$?--><template id="B:0"></template>
        <!--$?--><template id="B:9"></template>x<!--/$-->y<!--/$--></main>
        <div hidden id="S:0">a <template id="P:1"></template><!--$?--><template id="B:1"></template>w<!--/$--></div>
        <div hidden id="S:1">b </div><script>$RS("S:1","P:1");$RC("B:0","S:0")</script>
        <div hidden id="S:2">c</div><script>$RC("B:1","S:2")</script>"""
    assert markdown(html) == "a b c"


def test_a_failed_or_missing_boundary_shows_its_fallback():
    place = '<!--$?--><template id="B:0"></template><p>Not now</p><!--/$-->'
    for rest in ('<script>$RX("B:0","x")</script>', "", '<script>$RC("B:0","S:0")</script>'):
        assert markdown(place + rest) == "Not now"


def test_react_without_scripts_pairs_equal_numbers():
    html = """<main><template id="B:1"></template></main><div hidden id="S:1">a <template id="P:a"></template></div>
        <div hidden id="S:a">b</div><div hidden id="S:2">c</div>"""
    assert markdown(html) == "a b"


def test_deferred_markup_of_other_frameworks_is_placed():
    for html in (
        '<template id="pl-0-1"></template>wait<!--pl-0-1--><template id="0-1">text</template>'
        '<script>$df("0-1")</script>',
        '<span id="afph0">wait</span><div id="af0" style="display:none">text</div><script>$af(0)</script>',
        '<i id="afshop_ph0">wait</i><div id="afshop_0" style="display:none">text</div><script>$afshop_(0)</script>',
    ):
        assert markdown(f"<p>{html}</p>") == "text"
    assert markdown("<q:template hidden>no</q:template><p><!--t=1-->te<!---->xt</p>") == "text"
    assert markdown("<astro-island><template data-astro-template>no</template><p>text</p></astro-island>") == "text"


def test_hidden_markup_without_a_moving_script_stays_hidden():
    hidden = '<template id="B:0"></template><div hidden id="S:0">secret</div><!--$RC("B:0","S:0")-->'
    page = read_body(f"<p>a</p>{hidden}<script>start()</script>")
    assert (page.text, page.removed.elements) == ("a", 1)


def test_invalid_calls_change_nothing():
    for script in ('$RC("B:0","B:0")', '$RC("S:0","B:0")', '$RS("nowhere","B:0")', '$RC("B:0")'):
        assert markdown(f'<p>a</p><template id="B:0"></template><p>b</p><script>{script}</script>') == "a\n\nb"


def test_a_shadow_root_replaces_the_children_of_its_host():
    root = "<template shadowrootmode=open><h2><slot name=t>None</slot></h2><slot></slot><p>end</p></template>"
    assert markdown(f"<x-a>{root}<i slot=t>T</i>light<b>er</b></x-a>") == "## *T*\n\nlight**er**\n\nend"
    assert markdown(f"<x-a>{root}light</x-a>") == "## None\n\nlight\n\nend"
    assert markdown("<template shadowroot=open>old</template>new") == "new"


def test_light_text_without_a_slot_is_hidden_and_counted():
    page = read_body("<x-a><template shadowrootmode=open><p>shown</p></template><p>secret</p>words</x-a>")
    assert (page.text, page.removed.elements) == ("shown", 1)


def test_the_styles_of_a_shadow_root_apply_within_it():
    root = (
        "<template shadowrootmode=closed><style>.x{display:none}</style><p class=x>secret</p><slot></slot></template>"
    )
    page = read_body(f"<x-a>{root}light</x-a><p class=x>outside</p>")
    assert (page.text, page.removed.elements) == ("light\n\noutside", 1)
