from experiments.figures.svg import main

main()
