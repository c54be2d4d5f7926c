"""Function words of a few languages: articles, pronouns, prepositions, conjunctions, auxiliaries.

Only words that carry no topic. Ready-made lists often hold hundreds more ("computer", "copy", "system"),
which then cannot be searched for. ``max_df`` and the idf weight make up for what a list lacks.
"""

from __future__ import annotations

import Stemmer

LISTS = {
    "dutch": """aan al alles als altijd ben bent bij daar dan dat de der deze die dit doch doen
        door dus een en er ge geen geweest haar had hadden hebben heb hebt heeft hem hen
        het hier hij hoe hun ik in is ja je jij jou jouw jullie kan kon kunnen maar me
        meer men met mij mijn moet moeten na naar niet niets nog nu of om omdat ons onze
        ook op over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat
        we wel werd werden wezen wie wij wil worden wordt zal ze zelf zich zij zijn zo
        zonder zou zullen""",
    "english": """a about above after again against all also am among an and any are aren as at be
        because been before being below between both but by can cannot could couldn did
        didn do does doesn doing don down during each either else etc ever every few for
        from further had hadn has hasn have haven having he her here hers herself him
        himself his how however i if in into is isn it its itself just ll may me might
        mine more most much must mustn my myself neither no nor not now of off on once
        only onto or other others ought our ours ourselves out over own per quite rather
        re same shall shan she should shouldn since so some such than that the their
        theirs them themselves then there these they this those though through thus to too
        toward towards under until up upon us ve very via was wasn we were weren what when
        where whether which while who whom whose why will with within without won would
        wouldn yet you your yours yourself yourselves""",
    "french": """à ai ainsi après as au aucun aucune auquel aura aussi autre autres aux avait avant
        avec avez avoir avons ayant c ce ceci cela celle celles celui ces cet cette ceux
        chaque chez comme d dans de des donc dont du elle elles en encore entre es est et
        étaient était étant été être eu eux font furent fut il ils j je jusqu l la
        laquelle le lequel les lesquelles lesquels leur leurs lors lorsque lui m ma mais
        me même mêmes mes moi mon n ne ni nos notre nous on ont ou où par parce pas
        pendant peu peut peuvent plus plusieurs pour pourquoi qu quand que quel quelle
        quelles quels qui quoi s sa sans se sera seront ses si soit son sont sous suis sur
        t ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y""",
    "german": """ab aber alle allem allen aller alles als also am an ander andere anderem anderen
        anderer anderes auch auf aus bei beim bin bis bist da damit dann daran darauf
        daraus das dass daß dein deine dem den denn der deren des dessen desto die dies
        diese diesem diesen dieser dieses dir doch dort du durch ein eine einem einen
        einer eines einige einigen er es etwas euch euer eure für gegen hab habe haben
        hast hat hatte hatten hätte hätten hier hin hinter ich ihm ihn ihnen ihr ihre
        ihrem ihren ihrer im in indem ins ist ja je jede jedem jeden jeder jedes jedoch
        jene jenem jenen jener jetzt kann kein keine keinem keinen keiner können könnte
        man mein meine meinem meinen meiner mich mir mit muss müssen nach nicht nichts
        noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit selbst sich
        sie sind so solche sollen sollte sondern sonst soweit sowie über um und uns unser
        unsere unter viel vom von vor während war waren warum was weder weil weiter welche
        welchem welchen welcher welches wenn wer werde werden wie wieder will wir wird wo
        wollen worden wurde wurden würde würden zu zum zur zwar zwischen""",
    "italian": """a abbiamo ad agli ai al alla alle allo altra altre altri altro anche ancora aveva
        avevano avere c che chi ci ciò coi col come con contro cui d da dagli dai dal
        dalla dalle dallo degli dei del della delle dello di dopo dove e è ed era erano
        essere essi fa fino fra gli ha hai hanno ho i il in io l la le lei li lo loro lui
        ma me mentre mi mia mie miei mio molto ne negli nei nel nella nelle nello noi non
        nostra nostre nostri nostro o ogni oppure per perché perchè però più poi quale
        quali quando quanto quella quelle quelli quello questa queste questi questo qui
        quindi se sei senza si sia siamo siete solo sono sopra sotto sta stata stati stato
        su sua sue sugli sui sul sulla sulle sullo suo suoi tra tu tua tue tuo tuoi tutta
        tutte tutti tutto un una uno vi voi vostra vostro""",
    "portuguese": """a ainda além algo alguém algum alguma algumas alguns ante antes ao aos após aquela
        aquelas aquele aqueles aquilo as às até cada com como contra cuja cujas cujo cujos
        da das de dela delas dele deles depois desde dessa desse desta deste do dos e é
        ela elas ele eles em enquanto entre era eram essa essas esse esses esta está estão
        estas estava este estes eu foi for foram há isso isto já lhe lhes mais mas me
        mesma mesmo meu meus minha minhas muito na não nas nem no nos nós nossa nossas
        nosso nossos num numa o onde os ou para pela pelas pelo pelos por porque porém
        pois qual quais quando quanto que quem são se seja sem sempre ser seu seus sob
        sobre sua suas também tão te tem têm ter teu teus tinha toda todas todo todos tu
        tua tuas tudo um uma umas uns você vocês vos""",
    "russian": """а без более больше будет будто бы был была были было быть в вам вас весь во вот
        все всего всех вы где да даже для до другой его ее её ей ему если есть еще ещё ж
        же за здесь и из или им их к как какая какой когда кто куда ли либо лишь между
        меня мне может можно мой моя мы на над надо нас не него нее неё ней нет ни нибудь
        никогда них но ну о об один он она они оно от перед по под после потом потому
        почти при про раз разве с сам свою себе себя сейчас со так также такой там тебя
        тем теперь то тогда того тоже только том тот тут ты у уж уже хоть чего чей чем
        через что чтоб чтобы чуть эта эти это этого этой этом этот эту я""",
    "spanish": """a ahora al algo algún alguna algunas alguno algunos ante antes aquel aquella
        aquellas aquello aquellos aquí así aun aún aunque cada como cómo con contra cual
        cuál cuales cualquier cuando cuándo cuya cuyo de del desde donde dónde dos durante
        e el él ella ellas ello ellos en entre era eran eres es esa esas ese eso esos esta
        ésta está estaba están estas este éste esto estos fue fueron ha había habían haber
        hace hacia han has hasta hay he la las le les lo los más me mi mí mía mientras mío
        mis mucho muy nada ni ningún no nos nosotros nuestra nuestras nuestro nuestros o
        os otra otras otro otros para pero poco por porque pues que qué quien quién
        quienes se sea según ser si sí sido sin sino sobre solo sólo son soy su sus suya
        suyo también tan tanto te tenía ti tiene tienen toda todas todavía todo todos tu
        tú tus un una unas uno unos usted ustedes vosotros y ya yo""",
}

LANGUAGES = tuple(Stemmer.algorithms())  # those that Snowball stems; some have a list above


def function_words(language: str) -> list[str]:
    """The function words of a language as they are written, single letters among them.

    A language whose function words are not known has none: those that occur in most documents are left
    out anyway.

    >>> "a" in function_words("english"), "à" in function_words("french"), function_words("finnish")
    (True, True, [])
    """
    if language not in LANGUAGES:
        raise ValueError(
            f"language must be one of {', '.join(LANGUAGES)}, or None (for any other), got {language!r}"
        )
    return LISTS.get(language, "").split()
