from experiments.tables.pages import main

main()
