# cmake -D OUTPUT=FILE -D "RECIPES=a.yaml;b.yaml" -P EmbedRecipes.cmake
#
# Writes the source file that defines cli::shipped_recipes() with the text of these recipes.
set(rows "")
foreach(recipe IN LISTS RECIPES)
  get_filename_component(name ${recipe} NAME_WLE)
  file(READ ${recipe} text)
  string(APPEND rows "      {\"${name}\", R\"recipe(${text})recipe\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"cli/shipped_recipes.h\"

namespace gputrain::cli {

const std::vector<ShippedRecipe>& shipped_recipes() {
  static const std::vector<ShippedRecipe> all{
${rows}  };
  return all;
}

}  // namespace gputrain::cli
")
