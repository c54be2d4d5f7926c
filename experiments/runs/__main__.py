from experiments.runs.runner import main

main()
