// What the parts of the program have in common. Each part imports this file, so that the bundler makes one file of it, and
// not one for each set of parts.

import "./app";
import "./ui/figure";
import "./ui/size";
import "./ui/use_return";
