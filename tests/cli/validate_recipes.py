"""Names the recipes that a JSON Schema judges otherwise than expected. The file has the schema and the cases."""

import json
import sys

import jsonschema

with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
jsonschema.Draft7Validator.check_schema(given["schema"])
validator = jsonschema.Draft7Validator(given["schema"])
for case in given["cases"]:
    problems = [error.message for error in validator.iter_errors(case["recipe"])]
    if case["valid"] and problems:
        print("refused:", case["what"], problems)
    if not case["valid"] and not problems:
        print("accepted:", case["what"])
